// Philox4x32-10 (Salmon et al. 2011): random numbers as a pure function of a key and a counter.
#ifndef CLOZE_CORE_BASE_PHILOX_H_
#define CLOZE_CORE_BASE_PHILOX_H_

#include <array>
#include <bit>
#include <cstdint>

namespace cloze {

// The purpose of a random number, part of the key. The values must not change: results depend on
// them.
enum class Purpose : uint32_t {
  kInit = 1,
  kMask = 2,
  kDropout = 3,
  kShuffle = 4,
  kSample = 5,
  kWordVectors = 6,
  kBootstrap = 7
};

class Philox {
 public:
  using Words = std::array<uint32_t, 4>;

  Philox(uint64_t seed, Purpose purpose)
      : key_{static_cast<uint32_t>(seed),
            static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(purpose) * 0x9E3779B9u)} {}

  // Returns four random words for (example, position, stream).
  Words operator()(uint64_t example, uint32_t position, uint32_t stream) const {
    Words c = {
        position, stream, static_cast<uint32_t>(example), static_cast<uint32_t>(example >> 32)};
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }

  const std::array<uint32_t, 2>& key() const { return key_; }

  // Uniform in [0, 1) with 24 bits.
  static float Uniform(uint32_t word) { return (word >> 8) * 0x1p-24f; }
  // Uniform in [0, n), n > 0.
  static uint32_t Below(uint32_t word, uint32_t n) {
    return static_cast<uint32_t>(uint64_t{word} * n >> 32);
  }

 private:
  std::array<uint32_t, 2> key_;
};

// Returns where a permutation of [0, n), keyed by `philox` and `stream`, maps `index`, in O(1): a
// four-round Feistel network, applied again until the value is in range.
inline uint64_t PermutedIndex(uint64_t index, uint64_t n, const Philox& philox, uint32_t stream) {
  if (n <= 1) return 0;
  const int half = (std::bit_width(n - 1) + 1) / 2;  // the network permutes [0, 4^half), at most 4n
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const Philox::Words b = philox(right, round, stream);
      const uint64_t next = left ^ (((uint64_t{b[1]} << 32) | b[0]) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= n);
  return index;
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_PHILOX_H_
