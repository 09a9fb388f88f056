// Products of rows with one vector, for a search through rows that are read once.
#ifndef CLOZE_CORE_OPS_KERNELS_NEAREST_H_
#define CLOZE_CORE_OPS_KERNELS_NEAREST_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

#ifdef CLOZE_ISA
namespace {

// Rows that are fetched before they are used; without it, short rows wait for memory.
constexpr int64_t kRowsAhead = 8;

// out [rows] = x [rows, cols] q; q is f32.
template <typename T>
void DotRows(int64_t rows, int64_t cols, const void* x, const float* q, float* out) {
  const T* row = static_cast<const T*>(x);
  for (int64_t r = 0; r < rows; ++r, row += cols) {
    PrefetchRow(row + kRowsAhead * cols, cols);
    out[r] = SumOver(cols, [&](auto at) { return at(q) * at(row); });
  }
}

CLOZE_INLINE VF LoadInt8(const int8_t* p) {
#if defined(__AVX512F__)
  __m128i bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return (VF)_mm512_maskz_cvtepi32_ps(-1, _mm512_maskz_cvtepi8_epi32(-1, bytes));
#else
  typedef int8_t VB __attribute__((vector_size(W)));
  VB bytes;
  __builtin_memcpy(&bytes, p, sizeof(bytes));
  return __builtin_convertvector(__builtin_convertvector(bytes, VI), VF);
#endif
}

// The same for rows of s8.
void DotInt8Rows(int64_t rows, int64_t cols, const int8_t* x, const float* q, float* out) {
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    PrefetchRow(x + kRowsAhead * cols, cols);
    out[r] = SumOver(cols, [&](auto at) {
      if (at.n == W) return at(q) * LoadInt8(x + at.c);
      int8_t part[W] = {};
      __builtin_memcpy(part, x + at.c, at.n);
      return at(q) * LoadInt8(part);
    });
  }
}

// y [cols] f32 = x [cols] s8, times scale.
void WidenInt8(int64_t cols, const int8_t* x, float scale, float* y) {
  ForLanes(cols, [&](auto at) {
    int8_t part[W] = {};
    __builtin_memcpy(part, x + at.c, at.n);
    at.Set(y, LoadInt8(part) * scale);
  });
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_NEAREST_H_
