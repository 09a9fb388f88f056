// Hash of a short word, eight bytes at a time; inlined in the word cache. Private to core/text.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_WORD_HASH_H_
#define CLOZE_CORE_TEXT_TOKENIZER_WORD_HASH_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace cloze {

// The upper bits are the best mixed.
inline uint64_t HashWord(absl::string_view word) {
  uint64_t hash = word.size() * 0x9E3779B97F4A7C15u;
  for (size_t at = 0; at < word.size(); at += 8) {
    uint64_t part = 0;
    std::memcpy(&part, word.data() + at, std::min<size_t>(8, word.size() - at));
    hash = (hash ^ part) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash * 0x9E3779B97F4A7C15u;
}

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_WORD_HASH_H_
