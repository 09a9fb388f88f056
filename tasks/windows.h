// Sequences out of words: how sentences, also long ones, become windows that the model can see.
#ifndef CLOZE_TASKS_WINDOWS_H_
#define CLOZE_TASKS_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// <class> pieces <sep> of consecutive words: the first piece of word `first_word + k` stands at
// rows[k]. Words that another window owns have no row.
struct Window {
  std::vector<int32_t> ids, rows;
  int64_t first_word = 0;
};

// What happened to the words of a sentence.
struct WindowCounts {
  int64_t empty_words = 0;  // without pieces, encoded as <unk>
  int64_t cut_words = 0;    // with more pieces than a window holds; they keep the first ones
  int64_t cut_tokens = 0;   // the pieces they lost
  int64_t unknown_tokens = 0;
};

// kNone: every word is in exactly one window, as learning wants it. kHalf: each window begins half
// a window before the end of the one before, and owns the words of which it sees the most on both
// sides, as reading wants it.
enum class Overlap { kNone, kHalf };

// Windows of at most max_tokens (at least 3), cut at word borders, in which every word is whole,
// but for words that are longer than a window. The tokenizer must have <class>, <sep> and <unk>.
// Adds to *counts, each word once.
std::vector<Window> CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words,
    int32_t max_tokens, WindowCounts* counts, Overlap overlap = Overlap::kNone);

// Cuts a stream of ids of one document into sequences of at most `capacity`: full ones, but the
// last two share what is left evenly.
class SequenceCutter {
 public:
  explicit SequenceCutter(int64_t capacity) : capacity_(capacity) {}
  void Add(absl::Span<const int32_t> ids) {
    pending_.insert(pending_.end(), ids.begin(), ids.end());
  }
  // Takes the next sequence into *ids; false when more ids have to come first. `complete` says that
  // the document's ids were all added.
  bool Take(bool complete, std::vector<int32_t>* ids);

 private:
  int64_t capacity_;
  std::vector<int32_t> pending_;
  size_t begin_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_WINDOWS_H_
