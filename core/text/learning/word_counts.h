// How often each word occurred, with an estimate of the memory that takes.
#ifndef CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_
#define CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/text/learning/hash_map.h"

namespace cloze {

class WordCounts {
 public:
  void Add(absl::string_view word, int64_t count) {
    const auto [at, is_new] = counts_.try_emplace(word, 0);
    at->second += count;
    if (is_new) text_bytes_ += word.size();
  }

  // Adds all words of `other`.
  void AddAll(const WordCounts& other) {
    for (const auto& [word, count] : other.counts_) Add(word, count);
  }

  // Removes the words that occurred at most `count` times; returns how many that were, with
  // repetitions.
  int64_t DropRare(int64_t count) {
    WordCounts kept;
    int64_t dropped = 0;
    for (const auto& [word, n] : counts_) {
      if (n > count) {
        kept.Add(word, n);
      } else {
        dropped += n;
      }
    }
    *this = std::move(kept);
    return dropped;
  }

  void Clear() { *this = WordCounts(); }

  // The words and their counts, in no particular order.
  const HashMap<std::string, int64_t>& words() const { return counts_; }
  int64_t bytes() const {
    return counts_.size() * 2 * sizeof(std::pair<std::string, int64_t>) + text_bytes_;
  }

 private:
  HashMap<std::string, int64_t> counts_;
  int64_t text_bytes_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_
