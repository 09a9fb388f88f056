// Linear probing; words lie in one string.
#include "core/text/learning/word_counts.h"

#include <algorithm>

#include "core/text/tokenizer/word_hash.h"

namespace cloze {
namespace {

uint32_t Hash(absl::string_view word) { return static_cast<uint32_t>(HashWord(word) >> 32); }

}  // namespace

WordCounts::Slot* WordCounts::Find(absl::string_view word, uint32_t hash) {
  for (size_t at = hash;; ++at) {
    Slot* slot = &slots_[at & (slots_.size() - 1)];
    if (slot->count == 0 || (slot->hash == hash && Word(*slot) == word)) return slot;
  }
}

void WordCounts::Grow() {
  std::vector<Slot> old(std::max<size_t>(1024, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.count > 0) *Find(Word(slot), slot.hash) = slot;
  }
}

void WordCounts::Add(absl::string_view word, int64_t count) {
  if (2 * size_ >= static_cast<int64_t>(slots_.size())) Grow();
  const uint32_t hash = Hash(word);
  Slot* slot = Find(word, hash);
  if (slot->count == 0) {
    *slot = {0, text_.size(), static_cast<uint32_t>(word.size()), hash};
    text_.append(word.data(), word.size());
    ++size_;
  }
  slot->count += count;
}

void WordCounts::AddAll(const WordCounts& other) {
  other.ForEach([this](absl::string_view word, int64_t count) { Add(word, count); });
}

void WordCounts::Clear() {
  std::fill(slots_.begin(), slots_.end(), Slot());
  text_.clear();
  size_ = 0;
}

int64_t WordCounts::DropRare(int64_t count) {
  WordCounts kept;
  int64_t dropped = 0;
  ForEach([&](absl::string_view word, int64_t n) {
    if (n > count) {
      kept.Add(word, n);
    } else {
      dropped += n;
    }
  });
  *this = std::move(kept);
  return dropped;
}

}  // namespace cloze
