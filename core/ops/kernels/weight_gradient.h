// Gradients of weights on the matrix unit (AMX).
#ifndef CLOZE_CORE_OPS_KERNELS_WEIGHT_GRADIENT_H_
#define CLOZE_CORE_OPS_KERNELS_WEIGHT_GRADIENT_H_

#include <cstdint>

#include "core/ops/kernels/gemm.h"

namespace cloze {

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

#ifdef __AMX_BF16__

constexpr int64_t kTileFloats = kTileUnits * kTileUnits;
constexpr int64_t kDeepTiles = 16;  // per step of the sum: 32 KB, which stay in L1

// Packs a tile of 32 tokens by 16 columns, padded with zeros: unit (k, n) holds tokens 2k and 2k +
// 1.
CLOZE_INLINE void PanelTile(
    const PanelArgs& p, const bf16* from, int64_t tokens, int64_t cols, float* to) {
  for (int64_t unit = 0; unit < kTileUnits; ++unit) {
    const auto row = [&](int64_t token) {
      if (token >= tokens || cols <= 0) return VU{};
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

// c [32, 32] += a^T b over `tiles` pairs of tiles.
CLOZE_INLINE void GradientBlock(
    int64_t tiles, const float* a, const float* b, float* c, int64_t c_row) {
  constexpr int64_t pair = 2 * kTileFloats;
  AmxBlock<2, 2>(tiles, {a, kTileUnits, kTileFloats, pair}, {b, kTileUnits, kTileFloats, pair}, c,
      c_row, true);
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

#endif  // CLOZE_CORE_OPS_KERNELS_WEIGHT_GRADIENT_H_
