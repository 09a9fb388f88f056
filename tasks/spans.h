// Spans from word tags, and the rules of the schemes BIO (IOB2), IOB1, IOBES and BILOU.
#ifndef CLOZE_TASKS_SPANS_H_
#define CLOZE_TASKS_SPANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Words [begin, end) of a sentence, with a type: an index into SpanTags::types().
struct TagSpan {
  int64_t begin = 0, end = 0;
  int type = 0;
  bool operator==(const TagSpan&) const = default;
};

// True if these are tags of a span scheme: each is "O", or one of B I
// E S (L U) followed by "-type" (or B I E S alone), and B or I occurs.
bool IsBio(absl::Span<const std::string> labels);

// Extracts spans from tags, which are indices into the
// labels of the constructor. Const and thread-safe.
class SpanTags {
 public:
  // Requires IsBio(labels).
  explicit SpanTags(absl::Span<const std::string> labels);

  // Lenient, like the default of conlleval and seqeval: a span
  // also starts at an I or E after O, and where the type changes.
  std::vector<TagSpan> Lenient(absl::Span<const int> tags) const;
  // Strict: only spans that follow the rules of the scheme, B I*,
  // or B I* E and S if the labels have E or S. Drops all others.
  std::vector<TagSpan> Strict(absl::Span<const int> tags) const;

  // True if the scheme allows tag `to` after `from`; -1 is the
  // boundary before the first and after the last word. I may begin
  // a span only of types without B; with E, spans must be closed.
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
  std::vector<bool> opened_, ended_;  // for each type: has B, has E
  bool closed_ = false;               // ends are marked (IOBES)
};

}  // namespace cloze

#endif  // CLOZE_TASKS_SPANS_H_
