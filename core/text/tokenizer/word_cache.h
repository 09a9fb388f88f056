// A cache of the ids of recent words; one per thread, shared by its tokenizers.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_WORD_CACHE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_WORD_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/text/tokenizer/word_hash.h"

namespace cloze {

// Direct-mapped, 2 MB: a word replaces the word in its slot. Words of more than kMaxWord bytes or
// kMaxIds ids are not cached.
class WordCache {
 public:
  static constexpr size_t kMaxWord = 22, kMaxIds = 9;

  struct Slot {
    uint32_t owner = 0;  // 0: empty
    uint8_t word_size = 0, ids_size = 0;
    char word[kMaxWord];
    int32_t ids[kMaxIds];
  };
  static_assert(sizeof(Slot) == 64);

  // Returns the slot of `word`. Requires word.size() <= kMaxWord.
  Slot* Find(absl::string_view word) {
    if (slots_.empty()) slots_.resize(kSlots);
    return &slots_[HashWord(word) >> (64 - kBits)];
  }

  static bool Holds(const Slot& slot, uint32_t owner, absl::string_view word) {
    return slot.owner == owner && slot.word_size == word.size() &&
           std::memcmp(slot.word, word.data(), word.size()) == 0;
  }

  // Stores a word in its slot. Requires ids.size() <= kMaxIds.
  static void Put(
      Slot* slot, uint32_t owner, absl::string_view word, absl::Span<const int32_t> ids) {
    slot->owner = owner;
    slot->word_size = word.size(), slot->ids_size = ids.size();
    std::memcpy(slot->word, word.data(), word.size());
    std::copy(ids.begin(), ids.end(), slot->ids);
  }

 private:
  static constexpr int kBits = 15;
  static constexpr size_t kSlots = size_t{1} << kBits;

  std::vector<Slot> slots_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_WORD_CACHE_H_
