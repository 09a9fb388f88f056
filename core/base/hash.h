// XXH3 over a stream of bytes: for checksums and cache keys, not against forgery.
#ifndef CLOZE_CORE_BASE_HASH_H_
#define CLOZE_CORE_BASE_HASH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct XXH3_state_s;

namespace cloze {

class Hasher {
 public:
  Hasher();

  void Add(const void* data, int64_t size);
  // Adds the length, then the text, so that "a", "bc" and "ab", "c" differ.
  void AddText(absl::string_view text);
  void AddNumber(int64_t number);
  // Returns the XXH3-128 of everything added so far as 32 hexadecimal digits.
  std::string Hex() const;
  // Returns its lower 64 bits.
  uint64_t Digest() const;

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};

// Returns the XXH3-64 of one block.
uint64_t Hash64(const void* data, int64_t size, uint64_t seed);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_HASH_H_
