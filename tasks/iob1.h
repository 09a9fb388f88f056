// IOB1, the tags of the original CoNLL-2003 files: a span begins with I, and with B only right
// behind another span of its type.
#ifndef CLOZE_TASKS_IOB1_H_
#define CLOZE_TASKS_IOB1_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Tells IOB1 from IOB2 (BIO), where every span begins with B, by the tags of some sentences.
class Iob1Finder {
 public:
  // Tags of one sentence: O, B-x and I-x (or B and I alone); others rule IOB1 out.
  void Add(absl::Span<const std::string> tags);
  // Do spans begin with I, and is every B where IOB1 has it? `needs_b`: and is there a B at all?
  // Without one, tags may be IOB1 or know no B.
  bool Found(bool needs_b) const { return !other_ && opened_by_i_ > 0 && (b_ > 0 || !needs_b); }

 private:
  bool other_ = false;  // something that IOB1 has not
  int64_t b_ = 0, opened_by_i_ = 0;
};

// A sentence's tags from IOB1 to IOB2: the first I of each span becomes B.
void Iob1ToIob2(std::vector<std::string>* tags);

}  // namespace cloze

#endif  // CLOZE_TASKS_IOB1_H_
