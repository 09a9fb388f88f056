// Linear combinations, conversions, column sums.
#ifndef CLOZE_CORE_OPS_KERNELS_ROWS_H_
#define CLOZE_CORE_OPS_KERNELS_ROWS_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

#ifdef CLOZE_ISA
namespace {

// sum [cols] += column sums of x [rows, cols], rows `stride` apart.
template <typename T>
void ColumnSum(int64_t rows, int64_t cols, const void* x, int64_t stride, float* sum) {
  const T* row = static_cast<const T*>(x);
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    ForLanes(cols, [&](auto at) { at.Set(sum, at(sum) + at(row)); });
  }
}

// y = a x + b y, n elements; with b = 0, y is not read.
template <typename T>
void Axpby(int64_t n, float a, const void* x, float b, void* y) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (b == 0.0f) return ForLanes(n, [&](auto at) { at.Set(to, a * at(from)); });
  ForLanes(n, [&](auto at) { at.Set(to, a * at(from) + b * at(to)); });
}

// Converts n elements to bf16 if `narrow`, else to f32.
template <typename T>
void Convert(int64_t n, const void* x, bool narrow, void* y) {
  const auto run = [&](auto* to) {
    ForLanes(n, [&](auto at) { at.Set(to, at(static_cast<const T*>(x))); });
  };
  if (narrow) return run(static_cast<bf16*>(y));
  run(static_cast<float*>(y));
}

// Rows of `a` are prefetched this many rows of x ahead: they are scattered over memory.
constexpr int64_t kEmbedAhead = 4;

// x[r] = a[ia[r]] + b[ib[r]] + c[ic[r]], tables f32 [.., cols]; ib and ic may be null.
template <typename T>
void Embed(int64_t rows, int64_t cols, const float* a, const int32_t* ia, const float* b,
    const int32_t* ib, const float* c, const int32_t* ic, void* x) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *ar = a + ia[r] * cols, *br = ib == nullptr ? nullptr : b + ib[r] * cols,
                *cr = ic == nullptr ? nullptr : c + ic[r] * cols;
    T* xr = static_cast<T*>(x) + r * cols;
    const float* next = r + kEmbedAhead < rows ? a + ia[r + kEmbedAhead] * cols : ar;
    ForLanes(cols, [&](auto at) {
      __builtin_prefetch(next + at.c);
      VF sum = at(ar);
      if (br != nullptr) sum += at(br);
      if (cr != nullptr) sum += at(cr);
      at.Set(xr, sum);
    });
  }
}

// out [cols] (+)= sum over r of x[index[r]].
template <typename T>
void SumRows(
    int64_t rows, int64_t cols, const void* x, const int32_t* index, float* out, bool accumulate) {
  ForLanes(cols, [&](auto at) {
    VF sum = accumulate ? at(out) : VF{};
    for (int64_t r = 0; r < rows; ++r) sum += at(static_cast<const T*>(x) + index[r] * cols);
    at.Set(out, sum);
  });
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ROWS_H_
