// Dropout of rows, with random numbers from Philox.
#ifndef CLOZE_CORE_OPS_KERNELS_DROPOUT_H_
#define CLOZE_CORE_OPS_KERNELS_DROPOUT_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

// Element c of a row is kept, and scaled, if its 16 random bits are at least `threshold`. The bits
// come from Philox(key, {position | block << 16, site, example}), eight elements per block.
// threshold 0: no dropout.
struct RowDropout {
  uint32_t key0, key1, threshold, site;
  float scale;
  const uint64_t* example;  // of each row
  const int32_t* position;  // of each row
};

// Longest row for norm and dropout, which keep the factors of a row on the stack. Callers check.
constexpr int64_t kMaxDropoutRow = 16384;

#ifdef CLOZE_ISA
namespace {

// Elements are drawn in groups of 128: sixteen Philox blocks of eight 16-bit numbers. Element 16 s
// + l of a group is number s of block l, so that the result does not depend on the vector width.
constexpr int kDropoutGroup = 128;
constexpr int kLanes = 16;

// 64-bit lanes of which only the low halves count.
constexpr int kHalf = W / 2;
typedef uint64_t VL __attribute__((vector_size(W * 4)));
typedef uint32_t VLow __attribute__((vector_size(W * 2)));

// Returns the products of the low halves of the lanes.
CLOZE_INLINE VL MultiplyLow(VL a, uint32_t b) {
  const VL v = b + VL{};
#if defined(__AVX512F__)
  return (VL)_mm512_maskz_mul_epu32(
      0xFF, (__m512i)a, (__m512i)v);  // unmasked, GCC 12 warns of its own header
#elif defined(__AVX2__)
  return (VL)_mm256_mul_epu32((__m256i)a, (__m256i)v);
#else
  return (VL)_mm_mul_epu32((__m128i)a, (__m128i)v);
#endif
}

// factor[c] = 0 or d.scale of the element c < n after the first of group `first`. Writes up to the
// next multiple of 128.
inline void DropoutFactors(
    const RowDropout& d, int64_t row, int64_t first, int64_t n, float* factor) {
  constexpr int kParts = kLanes / kHalf;
  const uint64_t example = d.example[row];
  VL lane = {};
  for (int l = 0; l < kHalf; ++l) lane[l] = l;
  for (int64_t group = 0; group * kDropoutGroup < n; ++group) {
    VL c0[kParts], c1[kParts], c2[kParts], c3[kParts];
    for (int i = 0; i < kParts; ++i) {
      c0[i] = (static_cast<uint64_t>((first + group) * kLanes + i * kHalf) + lane) << 16 |
              uint64_t{static_cast<uint32_t>(d.position[row])};
      c1[i] = uint64_t{d.site} + VL{};
      c2[i] = (example & 0xFFFFFFFF) + VL{};
      c3[i] = (example >> 32) + VL{};
    }
    uint32_t k0 = d.key0, k1 = d.key1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
#pragma GCC unroll 8
      for (int i = 0; i < kParts; ++i) {
        const VL p0 = MultiplyLow(c0[i], 0xD2511F53), p1 = MultiplyLow(c2[i], 0xCD9E8D57);
        c0[i] = (p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = p1;
        c2[i] = (p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = p0;
      }
    }
    alignas(64) uint32_t words[4][kLanes];
    for (int i = 0; i < kParts; ++i) {
      const VL c[] = {c0[i], c1[i], c2[i], c3[i]};
      for (int word = 0; word < 4; ++word) {
        const VLow low = __builtin_convertvector(c[word], VLow);
        __builtin_memcpy(&words[word][i * kHalf], &low, sizeof(low));
      }
    }
    float* out = factor + group * kDropoutGroup;
    for (int s = 0; s < 8; ++s) {
      for (int i = 0; i < kLanes; i += W) {
        VU bits;
        __builtin_memcpy(&bits, &words[s / 2][i], sizeof(bits));
        bits = s & 1 ? bits >> 16 : bits & 0xFFFFu;
        Store(out + s * kLanes + i,
            (VI)bits >= static_cast<int32_t>(d.threshold) ? Splat(d.scale) : VF{});
      }
    }
  }
}

// y = dropout(x) [rows, cols].
template <typename T>
void Dropout(int64_t rows, int64_t cols, const void* x, void* y, const RowDropout& d) {
  alignas(64) float factor[kMaxDropoutRow];
  for (int64_t r = 0; r < rows; ++r) {
    const T* xr = static_cast<const T*>(x) + r * cols;
    T* yr = static_cast<T*>(y) + r * cols;
    DropoutFactors(d, r, 0, cols, factor);
    ForLanes(cols, [&](auto at) { at.Set(yr, at(xr) * at(factor)); });
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_DROPOUT_H_
