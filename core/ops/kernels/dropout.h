// Factors of dropout for a row, from Philox; vectorised over blocks. Only for core/ops/kernels/*.cc.
#ifndef CLOZE_CORE_OPS_KERNELS_DROPOUT_H_
#define CLOZE_CORE_OPS_KERNELS_DROPOUT_H_

#include "core/ops/kernels/kernels.h"
#include "core/ops/kernels/simd.h"

namespace cloze {
namespace {

// Elements go in groups of 128: sixteen Philox blocks of eight 16-bit numbers. Element 16 s + l of a group is number s of block l, so
// that the result is the same for every vector width.
constexpr int kDropoutGroup = 128;
constexpr int kLanes = 16;

typedef uint32_t U16x[kLanes];

CLOZE_INLINE void PhiloxRound(U16x c0, U16x c1, U16x c2, U16x c3, uint32_t k0, uint32_t k1) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0[i], p1 = uint64_t{0xCD9E8D57} * c2[i];
    c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
    c1[i] = static_cast<uint32_t>(p1);
    c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
    c3[i] = static_cast<uint32_t>(p0);
  }
}

// factor[c] = 0 or d.scale for c < n; writes up to the next multiple of 128.
inline void DropoutFactors(const RowDropout& d, int64_t row, int64_t n, float* factor) {
  const uint64_t example = d.example[row];
  for (int64_t group = 0; group * kDropoutGroup < n; ++group) {
    alignas(64) uint32_t c[4][kLanes];
    for (int i = 0; i < kLanes; ++i) {
      c[0][i] = static_cast<uint32_t>(d.position[row]) | static_cast<uint32_t>(group * kLanes + i) << 16;
      c[1][i] = d.stream;
      c[2][i] = static_cast<uint32_t>(example);
      c[3][i] = static_cast<uint32_t>(example >> 32);
    }
    uint32_t k0 = d.key0, k1 = d.key1;
    for (int round = 0; round < 10; ++round) {
      PhiloxRound(c[0], c[1], c[2], c[3], k0, k1);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    float* out = factor + group * kDropoutGroup;
    for (int s = 0; s < 8; ++s) {
      const uint32_t shift = (s & 1) * 16;
      for (int i = 0; i < kLanes; ++i) out[s * kLanes + i] = ((c[s / 2][i] >> shift) & 0xFFFF) >= d.threshold ? d.scale : 0.0f;
    }
  }
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_DROPOUT_H_
