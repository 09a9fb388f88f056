// Products of packed bf16 on the CPU's matrix unit (AMX): tiles of 16 rows by 64 bytes.
#ifndef CLOZE_CORE_OPS_KERNELS_AMX_H_
#define CLOZE_CORE_OPS_KERNELS_AMX_H_
#ifdef CLOZE_ISA

#include "core/ops/kernels/simd.h"

namespace cloze {
namespace {

constexpr int64_t kTileUnits = 16;  // per row of a tile, and rows of a tile

#ifdef __AMX_BF16__
constexpr int64_t kAmxMostDepth = 32;  // units of depth of a transposed left operand

// Configures the matrix unit for this thread during the object's lifetime. Tiles 0 to 3 are sums,
// 4 and 5 belong to the left operand, 6 and 7 to the right one.
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

// Tiles of an operand: rows of a tile are `row` units apart, the operand's second tile is `other`
// units after the first, and the tiles of the next step of the sum `next` units.
struct AmxOperand {
  const float* at;
  int64_t row, other, next;
};

// c [16 M, 16 N] (+)= a b, summed over `tiles` tiles. Strides in units.
template <int M, int N>
CLOZE_INLINE void AmxBlock(
    int64_t tiles, AmxOperand a, AmxOperand b, float* c, int64_t c_row, bool add) {
  const int64_t left = a.row * 4, right = b.row * 4, sums = c_row * 4;
  float* c1 = c + kTileUnits * c_row;
  __asm__ volatile("" ::: "memory");  // compiler barrier: tile loads are invisible to it
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

// Call before reading what tiles have stored: the compiler does not see these stores either.
CLOZE_INLINE void TileStoreBarrier() { __asm__ volatile("" ::: "memory"); }

#endif

}  // namespace
}  // namespace cloze

#endif  // CLOZE_ISA
#endif  // CLOZE_CORE_OPS_KERNELS_AMX_H_
