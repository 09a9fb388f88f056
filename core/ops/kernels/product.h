// Products of activations with packed weights on the matrix unit (AMX).
#ifndef CLOZE_CORE_OPS_KERNELS_PRODUCT_H_
#define CLOZE_CORE_OPS_KERNELS_PRODUCT_H_

#include <cstdint>

#include "core/ops/kernels/gemm.h"

namespace cloze {

// y [rows, cols] (+)= x w + bias, x [rows, depth] bf16, depth a multiple of kProductBlock, rows at
// most kProductRows and cols kProductCols. w consists of blocks of kProductBlock squared in the
// layout of PackArgs, blocks of the same columns adjacent. If a product is split by rows, each part
// begins at a multiple of kProductBlock.
constexpr int64_t kProductBlock = 32, kProductRows = 128, kProductCols = 256;
struct ProductArgs {
  int64_t rows, cols, depth, x_stride, y_stride;
  const void *x, *w;
  const float* bias;  // or null
  void* y;            // T
  bool add;
  float* scratch;  // ProductScratch(rows, depth) floats
};
// Floats of scratch of one product.
inline int64_t ProductScratch(int64_t rows, int64_t depth) {
  return (rows + kProductBlock - 1) / kProductBlock * kProductBlock * kProductCols +
         (rows < kProductBlock ? kProductBlock * depth / 2 : 0);
}

#ifdef CLOZE_ISA
namespace {

#ifdef __AMX_BF16__

// Depth per step of the sum: 32 columns of weights are then 32 KB, which stay in L1.
constexpr int64_t kProductDepth = 512;

// y (+)= sums + bias for rows [row, row + rows) and columns [col, col + cols).
template <typename T>
CLOZE_INLINE void FinishBlock(
    const ProductArgs& p, int64_t row, int64_t rows, int64_t col, int64_t cols, const float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    T* y = static_cast<T*>(p.y) + (row + r) * p.y_stride + col;
    Sweep(cols, [&](auto place) {
      VF v = Load(sums + r * kProductBlock + place.c);
      if (p.bias != nullptr) v += place(p.bias + col);
      if (p.add) v += place(y);
      place.Set(y, v);
    });
  }
}

// A block with fewer rows left than its height begins earlier, and its first rows are discarded.
template <typename T>
void Product(const ProductArgs& p) {
  const AmxTiles unit;
  const auto* x = static_cast<const bf16*>(p.x);
  int64_t x_stride = p.x_stride, x_rows = p.rows;
  // With no earlier rows either, the rows are copied and padded with zeros.
  if (p.rows < kTileUnits || (p.rows > kTileUnits && p.rows < kProductBlock)) {
    bf16* copy = reinterpret_cast<bf16*>(p.scratch + kProductCols * kProductBlock);
    x_rows = p.rows < kTileUnits ? kTileUnits : kProductBlock;
    __builtin_memset(copy, 0, x_rows * p.depth * sizeof(bf16));
    for (int64_t r = 0; r < p.rows; ++r)
      __builtin_memcpy(copy + r * p.depth, x + r * x_stride, p.depth * sizeof(bf16));
    x = copy, x_stride = p.depth;
  }
  for (int64_t k = 0; k < p.depth; k += kProductDepth) {
    const int64_t depth = MinI(kProductDepth, p.depth - k);
    for (int64_t n = 0; n < p.cols; n += kProductBlock) {
      const float* w = static_cast<const float*>(p.w) + n / 2 * p.depth + k / 2 * kProductBlock;
      for (int64_t m = 0; m < p.rows; m += kProductBlock) {
        const bool half = p.rows - m <= kTileUnits;
        const int64_t begin = MinI(m, x_rows - (half ? kTileUnits : kProductBlock));
        float* sums = p.scratch + (m / kProductBlock * kProductCols + n) * kProductBlock;
        const AmxOperand a = {reinterpret_cast<const float*>(x + begin * x_stride + k),
            x_stride / 2, kTileUnits * x_stride / 2, kTileUnits};
        const AmxOperand b = {w, kProductBlock, kTileUnits, kTileUnits * kProductBlock};
        if (half) AmxBlock<1, 2>(depth / kProductBlock, a, b, sums, kProductBlock, k > 0);
        if (!half) AmxBlock<2, 2>(depth / kProductBlock, a, b, sums, kProductBlock, k > 0);
        if (k + depth < p.depth) continue;
        TileStoreBarrier();
        FinishBlock<T>(p, m, MinI(kProductBlock, p.rows - m), n, MinI(kProductBlock, p.cols - n),
            sums + (m - begin) * kProductBlock);
      }
    }
  }
}

#endif

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_PRODUCT_H_
