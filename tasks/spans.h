// Spans out of word tags, and the rules of their schemes: BIO (IOB2), IOB1, IOBES and BILOU.
#ifndef CLOZE_TASKS_SPANS_H_
#define CLOZE_TASKS_SPANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Words [begin, end) of a sentence, and what they are: an index into SpanTags::types().
struct TagSpan {
  int64_t begin = 0, end = 0;
  int type = 0;
  bool operator==(const TagSpan&) const = default;
};

// Are these the tags of a span scheme: each "O", or one of B I E S (L U) with "-type" behind it (or
// B I E S alone), with a B or an I among them?
bool IsBio(absl::Span<const std::string> labels);

// Reads spans off tags, which are indices into the labels given to the constructor. Const and
// thread-safe.
class SpanTags {
 public:
  // `labels` as IsBio() accepts them.
  explicit SpanTags(absl::Span<const std::string> labels);

  // As conlleval and seqeval's default: a span also starts at an I or E behind O, and wherever the
  // type changes.
  std::vector<TagSpan> Lenient(absl::Span<const int> tags) const;
  // Only spans that keep the scheme's rules: B I*; with E or S among the labels, B I* E and S.
  // Others are dropped.
  std::vector<TagSpan> Strict(absl::Span<const int> tags) const;

  // May tag `to` stand behind `from` by the scheme's rules? -1 stands for the border before the
  // first and behind the last word. An I may open a span only of a type without B; where there is
  // an E, a span has to be closed.
  bool Follows(int from, int to) const;

  // Sorted names of the types; "_" for tags without one.
  const std::vector<std::string>& types() const { return types_; }

 private:
  struct Tag {
    char prefix = 'O';  // O B I E S; L counts as E, U as S
    int type = -1;
  };
  static bool Starts(Tag last, Tag tag);
  static bool Ends(Tag last, Tag tag);

  std::vector<Tag> tags_;
  std::vector<std::string> types_;
  std::vector<bool> opened_, ended_;  // for each type: is there a B, an E?
  bool closed_ = false;               // are ends marked (IOBES)?
};

}  // namespace cloze

#endif  // CLOZE_TASKS_SPANS_H_
