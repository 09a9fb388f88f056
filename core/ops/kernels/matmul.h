// Kernels of matrix products: packing of weights, and products on the matrix unit (AMX).
#ifndef CLOZE_CORE_OPS_KERNELS_MATMUL_H_
#define CLOZE_CORE_OPS_KERNELS_MATMUL_H_

#include "core/ops/kernels/gemm.h"

namespace cloze {

// Packs a weight [depth, cols], given as f32 with one of its steps 1, into blocks. Element (k, n),
// at from[k * depth_step + n * cols_step], goes to to[k / blocks.depth * depth_stride + n /
// blocks.cols * cols_stride + i], where with g = blocks.depth / kPackUnits (1 for f32, 2 for bf16)
// i = (k % blocks.depth / g * blocks.cols + n % blocks.cols) * g + k % g. blocks.cols is a multiple
// of 16. Blocks are padded with zeros.
constexpr int64_t kPackUnits = 16;
struct PackBlocks {
  int64_t depth, cols, depth_stride, cols_stride;
  bool operator==(const PackBlocks&) const = default;
};
struct PackArgs {
  int64_t depth, cols, depth_step, cols_step;
  PackBlocks blocks;
  const float* from;
  void* to;  // T
};

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

// Packs bf16 [tokens, cols] into panels of kPanelCols columns: for each kPanelTokens tokens a tile
// of the first half of the columns, then one of the second. A tile is 16 x 16 units of two tokens
// each, by tokens and columns, or transposed (`transposed`). Padded with zeros.
constexpr int64_t kPanelCols = 32, kPanelTokens = 32;
struct PanelArgs {
  int64_t tokens, cols, stride;
  const void* from;
  bool transposed;
  float* to;      // of the first panel
  int64_t panel;  // floats from one panel to the next
};
// dw [rows, cols] += left^T right over `tiles` times kPanelTokens tokens; left is transposed.
struct GradientArgs {
  int64_t tiles, rows, cols;
  const float *left, *right;
  int64_t panel;
  float* dw;
  int64_t stride;
};

#ifdef CLOZE_ISA
namespace {

// A block reads a little of each of many rows: too many streams for the hardware prefetcher. So
// each read prefetches `ahead` floats into L2: the same columns of the rows that are packed next,
// or further columns if rows are long.
constexpr int64_t kMaxAhead = 1 << 15, kAheadInRow = 256;

// Packs a block whose columns are adjacent in the source.
template <typename T>
CLOZE_INLINE void PackByColumns(
    const PackArgs& p, int64_t depth, int64_t cols, const float* from, int64_t ahead, float* to) {
  for (int64_t unit = 0; unit < kPackUnits; ++unit, to += p.blocks.cols) {
    for (int64_t n = 0; n < p.blocks.cols; n += W) {
      const auto row = [&](int64_t k) {
        if (k >= depth || n >= cols) return VF{};
        const float* at = from + k * p.depth_step + n;
        __builtin_prefetch(at + ahead, 0, 2);
        return n + W <= cols ? Load(at) : LoadPart(at, cols - n);
      };
      if constexpr (sizeof(T) == 2) Store(to + n, PairBf16(row(2 * unit), row(2 * unit + 1)));
      if constexpr (sizeof(T) == 4) Store(to + n, row(unit));
    }
  }
}

// Packs a block whose depth is adjacent in the source.
template <typename T>
CLOZE_INLINE void PackByDepth(
    const PackArgs& p, int64_t depth, int64_t cols, const float* from, int64_t ahead, float* to) {
  for (int64_t n0 = 0; n0 < p.blocks.cols; n0 += kPackUnits) {
    alignas(64) float rows[kPackUnits * kPackUnits] = {};
    for (int64_t n = 0; n < MinI(kPackUnits, cols - n0); ++n) {
      T* row = reinterpret_cast<T*>(rows + n * kPackUnits);
      const float* at = from + (n0 + n) * p.cols_step;
      __builtin_prefetch(at + ahead, 0, 2);
      __builtin_prefetch(at + ahead + 16, 0, 2);
      ForLanes(depth, [&](auto place) { place.Set(row, place(at)); });
    }
    alignas(64) float transposed[kPackUnits * kPackUnits];
    Transpose(kPackUnits, kPackUnits, rows, kPackUnits, transposed, kPackUnits);
    for (int64_t unit = 0; unit < kPackUnits; ++unit) {
      for (int64_t n = 0; n < kPackUnits; n += W)
        Store(to + unit * p.blocks.cols + n0 + n, Load(transposed + unit * kPackUnits + n));
    }
  }
}

template <typename T>
void Pack(const PackArgs& p) {
  const int64_t all = p.cols_step == 1 ? p.depth * p.depth_step : p.cols * p.cols_step,
                ahead = all <= kMaxAhead ? all : kAheadInRow;
  for (int64_t n = 0; n < p.cols; n += p.blocks.cols) {
    for (int64_t k = 0; k < p.depth; k += p.blocks.depth) {
      const int64_t depth = MinI(p.blocks.depth, p.depth - k),
                    cols = MinI(p.blocks.cols, p.cols - n);
      const float* from = p.from + k * p.depth_step + n * p.cols_step;
      T* block = static_cast<T*>(p.to) + k / p.blocks.depth * p.blocks.depth_stride +
                 n / p.blocks.cols * p.blocks.cols_stride;
      float* to = reinterpret_cast<float*>(block);
      if (p.cols_step == 1) PackByColumns<T>(p, depth, cols, from, ahead, to);
      if (p.cols_step != 1) PackByDepth<T>(p, depth, cols, from, ahead, to);
    }
  }
}

#ifdef __AMX_BF16__

// Depth per step of the sum: 32 columns of weights are then 32 KB, which stay in L1.
constexpr int64_t kProductDepth = 512;

// Sums of the rows [row, row + rows) and columns [col, col + cols) of a product.
struct SumBlock {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  const float* sums = nullptr;  // [rows, kProductBlock]
};

// Prefetches `rows` rows of a block of y, which FinishBlock writes soon.
template <typename T>
CLOZE_INLINE void PrefetchBlock(int64_t rows, T* y, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, y += stride) {
    __builtin_prefetch(y, 1);
    if (sizeof(T) == 4) __builtin_prefetch(y + 16, 1);
  }
}

// y (+)= sums + bias for rows [begin, end) of a block.
template <typename T>
CLOZE_INLINE void FinishBlock(
    const ProductArgs& p, const SumBlock& block, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    T* y = static_cast<T*>(p.y) + (block.row + r) * p.y_stride + block.col;
    ForLanes(block.cols, [&](auto place) {
      VF v = Load(block.sums + r * kProductBlock + place.c);
      if (p.bias != nullptr) v += place(p.bias + block.col);
      if (p.add) v += place(y);
      place.Set(y, v);
    });
  }
}

// A block with fewer rows left than its height begins earlier, and its first rows are discarded.
// While the matrix unit computes a block, the block before is finished.
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
  SumBlock before;
  for (int64_t k = 0; k < p.depth; k += kProductDepth) {
    const int64_t depth = MinI(kProductDepth, p.depth - k), tiles = depth / kProductBlock;
    for (int64_t n = 0; n < p.cols; n += kProductBlock) {
      const float* w = static_cast<const float*>(p.w) + n / 2 * p.depth + k / 2 * kProductBlock;
      for (int64_t m = 0; m < p.rows; m += kProductBlock) {
        const bool half = p.rows - m <= kTileUnits;
        const int64_t begin = MinI(m, x_rows - (half ? kTileUnits : kProductBlock));
        float* sums = p.scratch + (m / kProductBlock * kProductCols + n) * kProductBlock;
        const AmxOperand a = {reinterpret_cast<const float*>(x + begin * x_stride + k),
            x_stride / 2, kTileUnits * x_stride / 2, kTileUnits};
        const AmxOperand b = {w, kProductBlock, kTileUnits, kTileUnits * kProductBlock};
        const auto finish = [&](int64_t i) {
          FinishBlock<T>(p, before, before.rows * i / tiles, before.rows * (i + 1) / tiles);
        };
        if (k + depth == p.depth) {
          PrefetchBlock(MinI(kProductBlock, p.rows - m), static_cast<T*>(p.y) + m * p.y_stride + n,
              p.y_stride);
        }
        if (half) AmxBlock<1, 2>(tiles, a, b, sums, kProductBlock, k > 0, finish);
        if (!half) AmxBlock<2, 2>(tiles, a, b, sums, kProductBlock, k > 0, finish);
        if (k + depth < p.depth) continue;
        before = {m, MinI(kProductBlock, p.rows - m), n, MinI(kProductBlock, p.cols - n),
            sums + (m - begin) * kProductBlock};
      }
    }
  }
  TileStoreBarrier();
  FinishBlock<T>(p, before, 0, before.rows);
}

constexpr int64_t kTileFloats = kTileUnits * kTileUnits;
constexpr int64_t kDeepTiles = 16;  // per step of the sum: 32 KB, which stay in L1

// Packs a tile of 32 tokens by 16 columns, padded with zeros: unit (k, n) holds tokens 2k and
// 2k + 1. Prefetches the same columns of the next 32 tokens.
CLOZE_INLINE void PanelTile(
    const PanelArgs& p, const bf16* from, int64_t tokens, int64_t cols, float* to) {
  for (int64_t unit = 0; unit < kTileUnits; ++unit) {
    const auto row = [&](int64_t token) {
      if (token >= tokens || cols <= 0) return VU{};
      __builtin_prefetch(from + (token + kPanelTokens) * p.stride, 0, 2);
      if (cols >= W) return LoadBits(from + token * p.stride);
      bf16 part[W] = {};
      __builtin_memcpy(part, from + token * p.stride, cols * sizeof(bf16));
      return LoadBits(part);
    };
    Store(to + unit * kTileUnits, (VF)(row(2 * unit) | row(2 * unit + 1) << 16));
  }
}

void Panels(const PanelArgs& p) {
  const auto* from = static_cast<const bf16*>(p.from);
  alignas(64) float tile[kTileFloats];
  for (int64_t token = 0; token < p.tokens; token += kPanelTokens) {
    for (int64_t n = 0; n < p.cols; n += kPanelCols) {
      float* to = p.to + n / kPanelCols * p.panel + token / kPanelTokens * 2 * kTileFloats;
      for (int64_t col = n; col < n + kPanelCols; col += kTileUnits, to += kTileFloats) {
        PanelTile(p, from + token * p.stride + col, p.tokens - token, p.cols - col,
            p.transposed ? tile : to);
        if (p.transposed) Transpose(kTileUnits, kTileUnits, tile, kTileUnits, to, kTileUnits);
      }
    }
  }
}

// c [32, 32] += a^T b over `tiles` pairs of tiles. Prefetches the next 32 rows of c.
CLOZE_INLINE void GradientBlock(
    int64_t tiles, const float* a, const float* b, float* c, int64_t c_row) {
  constexpr int64_t pair = 2 * kTileFloats;
  float* next = c + kPanelCols * c_row;
  const auto prefetch = [&](int64_t) {
    PrefetchBlock(kPanelCols / kDeepTiles, next, c_row);
    next += kPanelCols / kDeepTiles * c_row;
  };
  AmxBlock<2, 2>(tiles, {a, kTileUnits, kTileFloats, pair}, {b, kTileUnits, kTileFloats, pair}, c,
      c_row, true, prefetch);
}

void Gradient(const GradientArgs& g) {
  const AmxTiles unit;
  alignas(64) float edge[kPanelCols * kPanelCols];
  for (int64_t k = 0; k < g.tiles; k += kDeepTiles) {
    const int64_t tiles = MinI(kDeepTiles, g.tiles - k);
    for (int64_t n = 0; n < g.cols; n += kPanelCols) {
      const float* b = g.right + n / kPanelCols * g.panel + k * 2 * kTileFloats;
      for (int64_t m = 0; m < g.rows; m += kPanelCols) {
        const float* a = g.left + m / kPanelCols * g.panel + k * 2 * kTileFloats;
        float* c = g.dw + m * g.stride + n;
        const int64_t rows = MinI(kPanelCols, g.rows - m), cols = MinI(kPanelCols, g.cols - n);
        if (rows == kPanelCols && cols == kPanelCols) {
          GradientBlock(tiles, a, b, c, g.stride);
          continue;
        }
        __builtin_memset(edge, 0, sizeof(edge));
        for (int64_t r = 0; r < rows; ++r)
          __builtin_memcpy(edge + r * kPanelCols, c + r * g.stride, cols * sizeof(float));
        GradientBlock(tiles, a, b, edge, kPanelCols);
        TileStoreBarrier();
        for (int64_t r = 0; r < rows; ++r)
          __builtin_memcpy(c + r * g.stride, edge + r * kPanelCols, cols * sizeof(float));
      }
    }
  }
}

#endif

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_MATMUL_H_
