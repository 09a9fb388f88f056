// Products of packed bf16 on the CPU's matrix unit (AMX): tiles of 16 rows by 64 bytes. Included by
// gemm.h.
#ifndef CLOZE_CORE_OPS_KERNELS_AMX_H_
#define CLOZE_CORE_OPS_KERNELS_AMX_H_

#include "core/ops/kernels/simd.h"

namespace cloze {
namespace {

constexpr int64_t kTileUnits = 16;  // in a tile's row, and rows of a tile

#ifdef __AMX_BF16__
constexpr int64_t kAmxMostDepth = 32;  // units, of a left operand that stands by columns

// Tiles 0 to 3 are sums, 4 and 5 of the left operand, 6 and 7 of the right one. The unit is this
// thread's while the object lives.
class AmxTiles {
 public:
  AmxTiles() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    _tile_loadconfig(&config);
  }
  ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

// Where the tiles of an operand stand: the rows of a tile are `row` units apart, the operand's
// other tile is `other` units behind, and the next ones in the sum `next`.
struct AmxOperand {
  const float* at;
  int64_t row, other, next;
};

// c [16 M, 16 N] (+)= a b over `tiles` tiles. Strides in units.
template <int M, int N>
CLOZE_INLINE void AmxBlock(
    int64_t tiles, AmxOperand a, AmxOperand b, float* c, int64_t c_row, bool add) {
  const int64_t left = a.row * 4, right = b.row * 4, sums = c_row * 4;
  float* c1 = c + kTileUnits * c_row;
  __asm__ volatile("" ::: "memory");  // the compiler does not know that tiles load from memory
  if (add) {
    _tile_loadd(0, c, sums);
    if constexpr (N == 2) _tile_loadd(1, c + kTileUnits, sums);
    if constexpr (M == 2) _tile_loadd(2, c1, sums);
    if constexpr (M == 2 && N == 2) _tile_loadd(3, c1 + kTileUnits, sums);
  } else {
    _tile_zero(0);
    if constexpr (N == 2) _tile_zero(1);
    if constexpr (M == 2) _tile_zero(2);
    if constexpr (M == 2 && N == 2) _tile_zero(3);
  }
  for (; tiles > 0; --tiles, a.at += a.next, b.at += b.next) {
    _tile_loadd(4, a.at, left);
    _tile_loadd(6, b.at, right);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (N == 2) {
      _tile_loadd(7, b.at + b.other, right);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (M == 2) {
      _tile_loadd(5, a.at + a.other, left);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (N == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, sums);
  if constexpr (N == 2) _tile_stored(1, c + kTileUnits, sums);
  if constexpr (M == 2) _tile_stored(2, c1, sums);
  if constexpr (M == 2 && N == 2) _tile_stored(3, c1 + kTileUnits, sums);
}

// 16 M rows of c, all columns, over `depth` units (both multiples of 16).
template <int M>
CLOZE_INLINE void AmxRows(int64_t cols, int64_t depth, const float* a, int64_t a_row,
    const float* b, int64_t b_row, float* c, int64_t c_row, bool add) {
  const int64_t tiles = depth / kTileUnits;
  const AmxOperand left = {a, a_row, kTileUnits * a_row, kTileUnits};
  AmxOperand right = {b, b_row, kTileUnits, kTileUnits * b_row};
  int64_t n = 0;
  for (; n + 2 * kTileUnits <= cols; n += 2 * kTileUnits, right.at += 2 * kTileUnits)
    AmxBlock<M, 2>(tiles, left, right, c + n, c_row, add);
  if (n < cols) AmxBlock<M, 1>(tiles, left, right, c + n, c_row, add);
}

#endif

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_AMX_H_
