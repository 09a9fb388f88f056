// Gradients of weights on the matrix unit (AMX). Included by table.cc.
#ifndef CLOZE_CORE_OPS_KERNELS_GRADIENT_H_
#define CLOZE_CORE_OPS_KERNELS_GRADIENT_H_

#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/kernels.h"

namespace cloze {
namespace {

#ifdef __AMX_BF16__

constexpr int64_t kTileFloats = kTileUnits * kTileUnits;
constexpr int64_t kDeepTiles = 16;  // of a panel at a time: 32 KB, which stay in the nearest cache

// A tile of 32 tokens of 16 columns: unit (k, n) holds tokens 2k and 2k + 1. What is not there is
// zero.
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
        PanelTile(
            p, from + token * p.stride + col, p.tokens - token, p.cols - col, p.turned ? tile : to);
        if (p.turned) Transpose(kTileUnits, kTileUnits, tile, kTileUnits, to, kTileUnits);
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
        __asm__ volatile("" ::: "memory");  // nor that they store there
        for (int64_t r = 0; r < rows; ++r)
          __builtin_memcpy(c + r * g.stride, edge + r * kPanelCols, cols * sizeof(float));
      }
    }
  }
}

#endif

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_GRADIENT_H_
