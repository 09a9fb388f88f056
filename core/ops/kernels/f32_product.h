// Products of f32 matrices with 256-bit vectors, for CPUs without longer ones. There oneDNN copies
// both operands of every single-threaded product, which takes a third of its time.
#ifndef CLOZE_CORE_OPS_KERNELS_F32_PRODUCT_H_
#define CLOZE_CORE_OPS_KERNELS_F32_PRODUCT_H_

#include "core/ops/kernels/matmul.h"

namespace cloze {

// The block size of packed weights, rows that are computed at once, and the limits of one product,
// whose rows then stay in L2.
constexpr int64_t kF32Block = kPackUnits, kF32TileRows = 6, kF32Rows = 96, kF32Cols = 256;

// dw [rows, cols] += left^T right over `tokens` tokens.
struct F32GradientArgs {
  int64_t tokens, rows, cols;  // rows at most kF32GradientRows
  const float *left, *right;   // [tokens, rows], [tokens, cols]
  int64_t left_stride, right_stride;
  float* dw;
  int64_t stride;
  float* scratch;  // kF32GradientScratch floats
};
// Tokens that are packed at a time: a block of their columns fills half of L1. Rows and columns of
// dw that are computed from them, enough to repay the packing.
constexpr int64_t kF32Tokens = 256, kF32GradientRows = 192, kF32GradientCols = 512,
                  kF32GradientScratch = kF32Tokens * (kF32GradientRows + kF32Block);

#if defined(__AVX2__) && !defined(__AVX512F__)
namespace {

// Depth per step of the sum: a block of columns of the weights is then as large as L1, and kF32Rows
// rows of x are 192 KB.
constexpr int64_t kF32Depth = 512;

// c (+)= a b for one block of columns, of which only the first `cols` exist in c.
CLOZE_INLINE void F32Columns(GemmArgs g, int64_t cols) {
  constexpr int vectors = kF32Block / W;
  if (cols == kF32Block) return GemmColumns<1, vectors>(g, 0);
  alignas(64) float edge[kF32Rows * kF32Block] = {};
  float* c = std::exchange(g.c, edge);
  const int64_t stride = std::exchange(g.c_row, kF32Block);
  for (int64_t r = 0; r < g.rows && g.add; ++r)
    __builtin_memcpy(edge + r * kF32Block, c + r * stride, cols * sizeof(float));
  GemmColumns<1, vectors>(g, 0);
  for (int64_t r = 0; r < g.rows; ++r)
    __builtin_memcpy(c + r * stride, edge + r * kF32Block, cols * sizeof(float));
}

// y (+)= x w + bias, x and y f32, rows at most kF32Rows. w consists of blocks of kF32Block squared
// in the layout of PackArgs, blocks of the same columns adjacent.
void F32Product(const ProductArgs& p) {
  const auto *x = static_cast<const float*>(p.x), *w = static_cast<const float*>(p.w);
  auto* y = static_cast<float*>(p.y);
  const int64_t padded = RoundUp(p.depth, kF32Block);
  for (int64_t k = 0; k < p.depth; k += kF32Depth) {
    const int64_t depth = MinI(kF32Depth, p.depth - k);
    for (int64_t n = 0; n < p.cols; n += kF32Block) {
      const int64_t cols = MinI(kF32Block, p.cols - n);
      F32Columns({p.rows, kF32Block, depth, x + k, p.x_stride, 1, w + n * padded + k * kF32Block,
                     kF32Block, y + n, p.y_stride, p.add || k > 0},
          cols);
      if (k + depth < p.depth || p.bias == nullptr) continue;
      for (int64_t r = 0; r < p.rows; ++r) {
        float* row = y + r * p.y_stride + n;
        ForLanes(cols, [&](auto at) { at.Set(row, at(row) + at(p.bias + n)); });
      }
    }
  }
}

// Copies strips of `width` columns of from [tokens, cols] one after the other, padded with zeros.
// Prefetches later rows, because hardware prefetchers stop at the end of a page, and the next
// columns.
template <int width>
CLOZE_INLINE void PackStrips(
    int64_t tokens, int64_t cols, const float* from, int64_t stride, float* to) {
  for (int64_t t = 0; t < tokens; ++t, from += stride, to += width) {
    for (int64_t c = 0; c < cols; c += 16) __builtin_prefetch(from + 16 * stride + c);
    int64_t c = 0;
    for (; c + width <= cols; c += width)
      __builtin_memcpy(to + c * tokens, from + c, width * sizeof(float));
    __builtin_prefetch(from + c, 0, 2);
    if (c == cols) continue;
    float last[width] = {};
    __builtin_memcpy(last, from + c, (cols - c) * sizeof(float));
    __builtin_memcpy(to + c * tokens, last, sizeof(last));
  }
}

void F32Gradient(const F32GradientArgs& g) {
  float *left = g.scratch, *right = g.scratch + kF32Tokens * kF32GradientRows;
  for (int64_t t = 0; t < g.tokens; t += kF32Tokens) {
    const int64_t tokens = MinI(kF32Tokens, g.tokens - t);
    PackStrips<kF32TileRows>(tokens, g.rows, g.left + t * g.left_stride, g.left_stride, left);
    for (int64_t n = 0; n < g.cols; n += kF32Block) {
      const int64_t cols = MinI(kF32Block, g.cols - n);
      PackStrips<kF32Block>(tokens, cols, g.right + t * g.right_stride + n, g.right_stride, right);
      for (int64_t m = 0; m < g.rows; m += kF32TileRows)
        F32Columns({MinI(kF32TileRows, g.rows - m), kF32Block, tokens, left + m * tokens, 1,
                       kF32TileRows, right, kF32Block, g.dw + m * g.stride + n, g.stride, true},
            cols);
    }
  }
}

}  // namespace
#endif

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_F32_PRODUCT_H_
