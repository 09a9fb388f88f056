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

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ROWS_H_
