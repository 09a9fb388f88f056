// Tiles of products. Private to core/ops.
#ifndef CLOZE_CORE_OPS_TILES_H_
#define CLOZE_CORE_OPS_TILES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/number.h"
#include "core/tensor/mat.h"

namespace cloze {

// oneDNN splits long sums over threads, so the last bits would depend on their number. Therefore
// results are cut into tiles whose sizes depend on the shape alone, and each tile is a product on
// one thread. oneDNN's kernels are 15 % faster (Zen 4) if a tile has all columns of the result, so
// rows are cut unless there are too few.
//
// Its fast kernels also require results without gaps between rows; the others are half as fast in
// bf16 and take 25 ms to generate at first use. So a tile of some columns is computed separately
// and copied.
inline int64_t TileRows(ConstMat dst, int64_t depth) {
  if (dst.rows >= 1024) return 128;
  if (dst.cols * depth > 4 << 20) return 96;  // weights too large to read often
  return dst.rows >= 512 ? 64 : 32;
}
inline constexpr int64_t kLeastTileCols = 128;  // with few rows
inline int64_t TileCols(ConstMat dst, int64_t depth) {
  if (dst.rows >= 2 * TileRows(dst, depth)) return dst.cols;
  return dst.cols < 1024 ? kLeastTileCols : 2 * kLeastTileCols;
}

// Returns the size of the fewest equal pieces of [0, n) of at most `most`; all but the last are
// multiples of 64.
inline int64_t Piece(int64_t n, int64_t most) {
  return std::min(n, CeilDiv(n, CeilDiv(n, most) * 64) * 64);
}

// Calls f(begin, size) for the fewest pieces of [0, n) of at most `most`, a multiple of `unit`.
// Sizes differ by at most one unit.
template <typename F>
void ForPieces(int64_t n, int64_t most, int64_t unit, F f) {
  const int64_t units = CeilDiv(n, unit), pieces = CeilDiv(n, most);
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t begin = units * i / pieces * unit;
    f(begin, std::min(n, units * (i + 1) / pieces * unit) - begin);
  }
}

// Each tile of dw = dy^T x copies its columns of dy and x, so large square tiles are best; but
// there should be several, each taking a few milliseconds at most.
struct GradientTile {
  int64_t rows, cols;
};
inline GradientTile TileOfGradient(ConstMat dw, int64_t tokens) {
  const int64_t area =
      std::max<int64_t>(1 << 16, std::min(dw.rows * dw.cols / 8, (int64_t{1} << 29) / tokens));
  const int64_t cols = Piece(dw.cols, std::max<int64_t>(256, 1.5 * std::sqrt(area)));
  return {Piece(dw.rows, std::max<int64_t>(128, area / cols)), cols};
}

// Calls f(begin, size) for the tiles of [0, n).
template <typename F>
void ForTiles(int64_t n, int64_t tile, F f) {
  for (int64_t begin = 0; begin < n; begin += tile) f(begin, std::min(tile, n - begin));
}

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_TILES_H_
