// How often each word occurred: an open hash table with 64-bit counts whose memory is known.
#ifndef CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_
#define CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

class WordCounts {
 public:
  void Add(absl::string_view word, int64_t count);

  // Adds all words of `other`.
  void AddAll(const WordCounts& other);

  // Forgets all words, keeps the memory.
  void Clear();

  // Forgets the words that occurred at most `count` times; returns how many words that were,
  // repetitions counted.
  int64_t DropRare(int64_t count);

  // Calls f(word, count) for each word, in an order that depends on what was added before.
  template <class F>
  void ForEach(F f) const {
    for (const Slot& slot : slots_) {
      if (slot.count > 0) f(Word(slot), slot.count);
    }
  }

  int64_t size() const { return size_; }
  int64_t bytes() const {
    return static_cast<int64_t>(slots_.size() * sizeof(Slot) + text_.size());
  }

 private:
  struct Slot {
    int64_t count = 0;  // 0: empty
    uint64_t begin = 0;
    uint32_t size = 0, hash = 0;
  };

  absl::string_view Word(const Slot& slot) const {
    return absl::string_view(text_).substr(slot.begin, slot.size);
  }
  // The slot of `word`, or the empty one where it belongs.
  Slot* Find(absl::string_view word, uint32_t hash);
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::string text_;         // the words, one after the other
  int64_t size_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_WORD_COUNTS_H_
