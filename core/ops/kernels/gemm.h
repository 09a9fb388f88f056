// Small matrix products on one thread, on the CPU's matrix unit (AMX) if it has one.
#ifndef CLOZE_CORE_OPS_KERNELS_GEMM_H_
#define CLOZE_CORE_OPS_KERNELS_GEMM_H_

#include <type_traits>

#include "core/ops/kernels/simd.h"
#ifdef CLOZE_ISA

namespace cloze {
namespace {

// Operands consist of units of 32 bits: one f32, or, if the CPU multiplies bf16 (kPair 2), two bf16
// that are adjacent in the sum.
#ifdef __AVX512BF16__
constexpr bool kMultipliesBf16 = true;
#else
constexpr bool kMultipliesBf16 = false;
#endif
template <typename T>
constexpr int kPair = kMultipliesBf16 && sizeof(T) == 2 ? 2 : 1;

// The matrix unit multiplies tiles of 16 rows by 16 units.
constexpr int64_t kTileUnits = 16;
#ifdef __AMX_BF16__
constexpr bool kMatrixUnit = true;
constexpr int64_t kAmxMaxDepth = 32;  // units of depth of a transposed left operand

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
    // GCC 12 sees only the first 8 bytes as used, and might not store the others before.
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
  }
  ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

// Tile `sum` += tile `a` times tile `b`; the numbers of tiles are part of the instruction.
#define CLOZE_TILE_PRODUCT(sum, a, b)            \
  if constexpr (kBytes) _tile_dpbusd(sum, a, b); \
  if constexpr (!kBytes) _tile_dpbf16ps(sum, a, b)

// Tiles of an operand: rows of a tile are `row` units apart, the operand's second tile is `other`
// units after the first, and the tiles of the next step of the sum `next` units.
struct AmxOperand {
  const float* at;
  int64_t row, other, next;
};

struct NoOtherWork {
  void operator()(int64_t) const {}
};

// c [16 M, 16 N] (+)= a b, summed over `tiles` tiles. Strides in units. A unit is two bf16, or with
// kBytes four u8 of a and four s8 of b; then c consists of s32. Calls meanwhile(i) after
// starting step i of the sum, for other work at the same time.
template <int M, int N, bool kBytes = false, typename F = NoOtherWork>
CLOZE_INLINE void AmxBlock(int64_t tiles, AmxOperand a, AmxOperand b, float* c, int64_t c_row,
    bool add, const F& meanwhile = {}) {
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
  for (int64_t i = 0; i < tiles; ++i, a.at += a.next, b.at += b.next) {
    _tile_loadd(4, a.at, left);
    _tile_loadd(6, b.at, right);
    CLOZE_TILE_PRODUCT(0, 4, 6);
    if constexpr (N == 2) {
      _tile_loadd(7, b.at + b.other, right);
      CLOZE_TILE_PRODUCT(1, 4, 7);
    }
    if constexpr (M == 2) {
      _tile_loadd(5, a.at + a.other, left);
      CLOZE_TILE_PRODUCT(2, 5, 6);
      if constexpr (N == 2) {
        CLOZE_TILE_PRODUCT(3, 5, 7);
      }
    }
    meanwhile(i);
  }
  _tile_stored(0, c, sums);
  if constexpr (N == 2) _tile_stored(1, c + kTileUnits, sums);
  if constexpr (M == 2) _tile_stored(2, c1, sums);
  if constexpr (M == 2 && N == 2) _tile_stored(3, c1 + kTileUnits, sums);
}

#undef CLOZE_TILE_PRODUCT

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

#else
constexpr bool kMatrixUnit = false;
struct AmxTiles {};
#endif

// True if products of pairs use the matrix unit, in whole tiles of rows and of depth. Padding rows
// may hold anything; padding units of depth must be zero.
template <int pair>
constexpr bool kTiles = kMatrixUnit&& pair == 2;

// Gemm<pair> requires an object of this type to be alive.
struct Nothing {};
template <int pair>
using MatrixUnit = std::conditional_t<kTiles<pair>, AmxTiles, Nothing>;

template <int pair>
CLOZE_INLINE VF MultiplyAdd(VF sum, VF a, VF b) {
#ifdef __AVX512BF16__
  if constexpr (pair == 2) return (VF)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#endif
  return sum + a * b;
}

// In every square of 2 x 2 blocks of `half` x `half` elements, swaps the off-diagonal blocks.
template <int half, int... lane>
CLOZE_INLINE void SwapPieces(VF (&v)[W], std::integer_sequence<int, lane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) {
    if (i & half) continue;
    const VF a = v[i], b = v[i + half];
    v[i] = __builtin_shufflevector(a, b, (lane & half ? lane - half + W : lane)...);
    v[i + half] = __builtin_shufflevector(a, b, (lane & half ? lane + W : lane + half)...);
  }
}

// Transposes the matrix whose rows are v.
CLOZE_INLINE void TransposeSquare(VF (&v)[W]) {
  constexpr auto lanes = std::make_integer_sequence<int, W>();
  SwapPieces<1>(v, lanes);
  SwapPieces<2>(v, lanes);
  if constexpr (W > 4) SwapPieces<4>(v, lanes);
  if constexpr (W > 8) SwapPieces<8>(v, lanes);
}

// to[c, r] = from[r, c], in units. from [rows, cols], rows `stride` apart, cols a multiple of 16;
// to [cols, keys], whose columns from `rows` on become zero.
CLOZE_INLINE void Transpose(
    int64_t rows, int64_t cols, const float* from, int64_t stride, float* to, int64_t keys) {
  for (int64_t r0 = 0; r0 < keys; r0 += W) {
    for (int64_t c0 = 0; c0 < cols; c0 += W) {
      VF v[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) v[i] = r0 + i < rows ? Load(from + (r0 + i) * stride + c0) : VF{};
      TransposeSquare(v);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) Store(to + (c0 + i) * keys + r0, v[i]);
    }
  }
}

constexpr int kTileRows = 6;
constexpr int kTileVectors = W == 16 ? 4 : 2;

struct GemmArgs {
  int64_t rows, cols, depth;  // cols a multiple of W; depth in units
  const float* a;
  int64_t a_row, a_col;  // unit (m, k) at a[m * a_row + k * a_col]
  const float* b;        // unit (k, n) at b[k * b_row + n]
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool add;
};

// c[m, n] (+)= sum over k of a[m, k] b[k, n] for M rows and N vectors of columns.
template <int pair, int M, int N>
CLOZE_INLINE void Tile(const GemmArgs& g, const float* a, const float* b, float* c) {
  VF sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = g.add ? Load(c + i * g.c_row + j * W) : VF{};
  }
  for (int64_t k = 0; k < g.depth; ++k, a += g.a_col, b += g.b_row) {
    VF right[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) right[j] = Load(b + j * W);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const VF left = AsFloat(SplatInts(a + i * g.a_row));
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] = MultiplyAdd<pair>(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) Store(c + i * g.c_row + j * W, sum[i][j]);
  }
}

// Computes N vectors of columns from column n on, in tiles of nearly equal height.
template <int pair, int N>
void GemmColumns(const GemmArgs& g, int64_t n) {
  int64_t m = 0;
  const auto tile = [&]<int M>() {
    Tile<pair, M, N>(g, g.a + m * g.a_row, g.b + n, g.c + m * g.c_row + n);
    m += M;
  };
  for (int64_t tiles = CeilDiv(g.rows, kTileRows); tiles > 0; --tiles) {
    WithConstant<kTileRows>(CeilDiv(g.rows - m, tiles), tile);
  }
}

#ifdef __AMX_BF16__
inline void GemmOfTiles(const GemmArgs& g) {
  const int64_t depth = RoundUp(g.depth, kTileUnits);
  alignas(64) float transposed[2 * kTileUnits * kAmxMaxDepth];  // rows of the left operand
  for (int64_t m = 0; m < g.rows; m += 2 * kTileUnits) {
    const bool two = m + kTileUnits < g.rows;
    const float* a = g.a + m * g.a_row;
    int64_t a_row = g.a_row;
    if (g.a_col != 1) {
      Transpose(g.depth, two ? 2 * kTileUnits : kTileUnits, a, g.a_col, transposed, depth);
      a = transposed, a_row = depth;
    }
    float* c = g.c + m * g.c_row;
    if (two) AmxRows<2>(g.cols, depth, a, a_row, g.b, g.b_row, c, g.c_row, g.add);
    if (!two) AmxRows<1>(g.cols, depth, a, a_row, g.b, g.b_row, c, g.c_row, g.add);
  }
}
#endif

// c (+)= a b on one thread.
template <int pair>
void Gemm(const GemmArgs& g) {
#ifdef __AMX_BF16__
  if constexpr (kTiles<pair>) return GemmOfTiles(g);
#endif
  int64_t n = 0;
  for (; n + kTileVectors * W <= g.cols; n += kTileVectors * W)
    GemmColumns<pair, kTileVectors>(g, n);
  WithConstant<kTileVectors - 1>((g.cols - n) / W, [&]<int N>() { GemmColumns<pair, N>(g, n); });
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_ISA
#endif  // CLOZE_CORE_OPS_KERNELS_GEMM_H_
