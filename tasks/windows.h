// Splits sentences, also long ones, into windows that fit the model.
#ifndef CLOZE_TASKS_WINDOWS_H_
#define CLOZE_TASKS_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// <class> pieces <sep> of consecutive words. The first piece of word
// `first_word + k` is at rows[k]. Words of another window have no row.
struct Window {
  std::vector<int32_t> ids, rows;
  int64_t first_word = 0;
};

// Statistics of the words of a sentence.
struct WindowCounts {
  int64_t empty_words = 0;  // without pieces, encoded as <unk>
  int64_t cut_words = 0;    // with more pieces than a window holds; they keep the first ones
  int64_t cut_tokens = 0;   // the pieces they lost
  int64_t unknown_tokens = 0;
};

// kNone: every word is in exactly one window, for training. kHalf:
// each window begins half a window before the end of the previous one
// and owns the words with the most context in it, for prediction.
enum class Overlap { kNone, kHalf };

// Returns windows of at most max_tokens (at least 3), split between
// words; only words longer than a window are cut. The tokenizer must
// have <class>, <sep> and <unk>. Adds each word to *counts once.
std::vector<Window> CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words,
    int32_t max_tokens, WindowCounts* counts, Overlap overlap = Overlap::kNone);

// Splits the ids of one document into sequences of at most `capacity`:
// full ones, except that the last two share the rest evenly.
class SequenceCutter {
 public:
  explicit SequenceCutter(int64_t capacity) : capacity_(capacity) {}
  void Add(absl::Span<const int32_t> ids) {
    pending_.insert(pending_.end(), ids.begin(), ids.end());
  }
  // Moves the next sequence into *ids. Returns false if more ids are
  // needed. `complete`: all ids of the document have been added.
  bool Take(bool complete, std::vector<int32_t>* ids);

 private:
  int64_t capacity_;
  std::vector<int32_t> pending_;
  size_t begin_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_WINDOWS_H_
