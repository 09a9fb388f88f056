// Sums of table rows.
#ifndef CLOZE_CORE_OPS_KERNELS_EMBEDDING_H_
#define CLOZE_CORE_OPS_KERNELS_EMBEDDING_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

#ifdef CLOZE_ISA
namespace {

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

#endif  // CLOZE_CORE_OPS_KERNELS_EMBEDDING_H_
