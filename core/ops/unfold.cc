#include "core/ops/unfold.h"

#include <algorithm>

#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// Calls f(row, first, end) for the rows of all sequences; [first, end): the row's sequence.
template <typename F>
void ForSequenceRows(absl::Span<const int32_t> cu_seqlens, F f) {
  ParallelChunks(cu_seqlens.back(), kRowChunk, [&](int64_t begin, int64_t end) {
    const auto* next = std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), begin);
    for (int64_t r = begin; r < end; ++r) {
      while (r >= *next) ++next;
      f(r, *(next - 1), *next);
    }
  });
}

template <typename T>
void Unfold(ConstMat x, absl::Span<const int32_t> cu_seqlens, int size, Mat y) {
  ForSequenceRows(cu_seqlens, [&](int64_t r, int64_t first, int64_t end) {
    T* const to = static_cast<T*>(Rows(y, r, 1).data);
    for (int k = 0; k < size; ++k) {
      const int64_t row = r + k - size / 2;
      const bool inside = row >= first && row < end;
      const T* const from = inside ? static_cast<const T*>(Rows(x, row, 1).data) : nullptr;
      for (int64_t c = 0; c < x.cols; ++c) to[c * size + k] = inside ? from[c] : T();
    }
  });
}

float Value(float x) { return x; }
float Value(Bf16 x) { return Bf16ToFloat(x); }

template <typename T>
void Fold(ConstMat dy, absl::Span<const int32_t> cu_seqlens, int size, Mat dx) {
  ForSequenceRows(cu_seqlens, [&](int64_t r, int64_t first, int64_t end) {
    float sum[kMaxDropoutRow];
    std::fill_n(sum, dx.cols, 0.0f);
    for (int k = 0; k < size; ++k) {
      const int64_t row = r - k + size / 2;
      if (row < first || row >= end) continue;
      const T* const from = static_cast<const T*>(Rows(dy, row, 1).data);
      for (int64_t c = 0; c < dx.cols; ++c) sum[c] += Value(from[c * size + k]);
    }
    GetKernels().convert.f32(dx.cols, sum, dx.type == DType::kBf16, Rows(dx, r, 1).data);
  });
}

}  // namespace

void UnfoldRows(ConstMat x, absl::Span<const int32_t> cu_seqlens, int size, Mat y) {
  CLOZE_CHECK(y.cols == size * x.cols && y.rows == x.rows && size % 2 == 1);
  const Op op("unfold", [&] { return MemoryCost({x, y}); });
  if (op.dry()) return;
  (x.type == DType::kF32 ? Unfold<float> : Unfold<Bf16>)(x, cu_seqlens, size, y);
  ZeroRowsFrom(y, cu_seqlens.back());
}

void UnfoldRowsBackward(ConstMat dy, absl::Span<const int32_t> cu_seqlens, int size, Mat dx) {
  CLOZE_CHECK(dy.cols == size * dx.cols && dy.rows == dx.rows && size % 2 == 1 &&
              dx.cols <= kMaxDropoutRow);
  const Op op("unfold backward", [&] { return MemoryCost({dy, dx}); });
  if (op.dry()) return;
  (dx.type == DType::kF32 ? Fold<float> : Fold<Bf16>)(dy, cu_seqlens, size, dx);
  ZeroRowsFrom(dx, cu_seqlens.back());
}

}  // namespace cloze
