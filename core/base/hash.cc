#include "core/base/hash.h"

#include <xxhash.h>

#include "absl/strings/str_format.h"

namespace cloze {

Hasher::Hasher() : state_(XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }) {
  XXH3_128bits_reset(state_.get());
}

void Hasher::Add(const void* data, int64_t size) { XXH3_128bits_update(state_.get(), data, size); }

void Hasher::AddText(absl::string_view text) {
  AddNumber(text.size());
  Add(text.data(), text.size());
}

void Hasher::AddNumber(int64_t number) { Add(&number, sizeof(number)); }

std::string Hasher::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

uint64_t Hasher::Digest() const { return XXH3_128bits_digest(state_.get()).low64; }

uint64_t Hash64(const void* data, int64_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

}  // namespace cloze
