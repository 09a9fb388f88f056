// IOB1, the tags of the original CoNLL-2003 files: a span begins
// with I, and with B only directly after another span of its type.
#ifndef CLOZE_TASKS_IOB1_H_
#define CLOZE_TASKS_IOB1_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Tells IOB1 from IOB2 (BIO), where every span begins with B, by the tags of some sentences.
class Iob1Finder {
 public:
  // Adds the tags of one sentence: O, B-x and I-x (or B and I alone); any other tag rules out IOB1.
  void Add(absl::Span<const std::string> tags);
  // True if spans begin with I and every B is valid in IOB1. `needs_b`
  // also requires a B; without any B, the scheme is ambiguous.
  bool Found(bool needs_b) const { return !other_ && opened_by_i_ > 0 && (b_ > 0 || !needs_b); }

 private:
  bool other_ = false;  // found something invalid in IOB1
  int64_t b_ = 0, opened_by_i_ = 0;
};

// Converts the tags of a sentence from IOB1 to IOB2: the first I of each span becomes B.
void Iob1ToIob2(std::vector<std::string>* tags);

}  // namespace cloze

#endif  // CLOZE_TASKS_IOB1_H_
