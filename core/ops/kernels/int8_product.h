// Products of int8 operands (int8.h).
#ifndef CLOZE_CORE_OPS_KERNELS_INT8_PRODUCT_H_
#define CLOZE_CORE_OPS_KERNELS_INT8_PRODUCT_H_

#include "core/ops/kernels/activation.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/int8.h"

namespace cloze {

// y [rows, cols] = act(x w^T + bias).
struct Int8ProductArgs {
  int64_t cols, y_stride;
  Int8Rows x;
  const int8_t* q;  // as packed
  const float* scale;
  const int32_t* sum;
  const float* bias;                    // or null
  void* y;                              // T
  const ActivationKind* act = nullptr;  // null: none
};

#ifdef CLOZE_ISA
namespace {

CLOZE_INLINE VI LoadInts(const void* p) {
  VI v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// Sums of a product that belong to rows [row, row + rows) and the panel of columns from `col` on.
struct Int8Block {
  int64_t row = 0, rows = 0, col = 0;
  int32_t* sums = nullptr;  // [rows, 32]
};

#ifdef __AVX512F__
// GELU with errors up to 2e-4, for values that become bytes next: max(u, 0) + g(|u|) with g(a) = -a
// Phi(-a), which is a quadratic polynomial in each sixteenth of [0, 4). The first bits of a + 4,
// which is below 8, number the sixteenth. A polynomial over all of [0, 4) has twice the
// multiplications, which slow the matrix unit down.
CLOZE_INLINE VF RoughestGelu(VF u) {
  constexpr VF c0 = {-0.0000120f, -0.0033610f, -0.0242238f, -0.0783453f, -0.1678370f, -0.2750273f,
      -0.3696616f, -0.4238812f, -0.4248861f, -0.3783573f, -0.3027079f, -0.2193741f, -0.1448913f,
      -0.0876263f, -0.0487038f, -0.0249521f};
  constexpr VF c1 = {-0.4991647f, -0.4743021f, -0.3921273f, -0.2482591f, -0.0690074f, 0.1032100f,
      0.2302226f, 0.2928926f, 0.2943542f, 0.2532038f, 0.1927130f, 0.1320401f, 0.0822904f,
      0.0469659f, 0.0246637f, 0.0119585f};
  constexpr VF c2 = {0.3919945f, 0.3451587f, 0.2638398f, 0.1680110f, 0.0781345f, 0.0089048f,
      -0.0337353f, -0.0518501f, -0.0523300f, -0.0432294f, -0.0311345f, -0.0200891f, -0.0117806f,
      -0.0063323f, -0.0031373f, -0.0014381f};
  const VF a = Min(Abs(u), Splat(3.999999f));
  const VI piece = AsInt(a + 4.0f) >> 19;  // the low four bits count
  const auto pick = [&](VF c) {
    return (VF)_mm512_maskz_permutexvar_ps(-1, (__m512i)piece, (__m512)c);
  };
  return Max(VF{}, u) + ((pick(c2) * a + pick(c1)) * a + pick(c0));
}
#else
CLOZE_INLINE VF RoughestGelu(VF u) { return RoughGelu(u).value; }
#endif

// Computes rows [begin, end) of a block of y from its sums.
template <typename T>
CLOZE_INLINE void FinishInt8(
    const Int8ProductArgs& p, const Int8Block& block, int64_t begin, int64_t end) {
  const auto finish = [&](auto activate) {
    ForLanes(MinI(kInt8Cols, p.cols - block.col), [&](auto at) {
      const int64_t col = block.col + at.c;
      const VI weights = LoadInts(p.sum + col);
      const VF columns = Load(p.scale + col),
               bias = p.bias == nullptr ? VF{} : at(p.bias + block.col);
      const float* const scale = p.x.scale + block.row;
      const int32_t *const zero = p.x.zero + block.row, *const sums = block.sums + at.c;
      T* const y = static_cast<T*>(p.y) + block.row * p.y_stride + block.col;
      const int64_t stride = p.y_stride;
      for (int64_t r = begin; r < end; ++r) {
        const VI sum = LoadInts(sums + r * kInt8Cols) - zero[r] * weights;
        const VF v = __builtin_convertvector(sum, VF) * (scale[r] * columns) + bias;
        at.Set(y + r * stride, activate(v));
      }
    });
  };
  if (p.act == nullptr) return finish([](VF v) { return v; });
  WithKind(*p.act, [&]<ActivationKind kind>() {
    finish([](VF v) {
      if constexpr (kind == ActivationKind::kGelu)
        return sizeof(T) == 2 ? RoughestGelu(v) : RoughGelu(v).value;
      return Activate<T, kind>(v).value;
    });
  });
}

#ifdef __AMX_INT8__

// The matrix unit computes the sums of a block, whose panel has the layout of tiles, while the rows
// of the block before are finished.
template <typename T>
void Int8Product(const Int8ProductArgs& p) {
  const AmxTiles unit;
  alignas(64) int32_t sums[2][kInt8RowBlock * kInt8Cols];
  const int64_t units = p.x.depth / kInt8Unit, tiles = units / kTileUnits;
  Int8Block before;
  for (int64_t col = 0; col < p.cols; col += kInt8Cols) {
    const AmxOperand right = {reinterpret_cast<const float*>(p.q + col * p.x.depth), kInt8Cols,
        kTileUnits, kTileUnits * kInt8Cols};
    for (int64_t row = 0; row < p.x.rows; row += kInt8RowBlock) {
      const Int8Block block = {row, MinI(kInt8RowBlock, p.x.rows - row), col,
          before.sums == sums[0] ? sums[1] : sums[0]};
      const AmxOperand left = {reinterpret_cast<const float*>(p.x.q + row * p.x.depth), units,
          kTileUnits * units, kTileUnits};
      const auto finish = [&](int64_t i) {
        FinishInt8<T>(p, before, before.rows * i / tiles, before.rows * (i + 1) / tiles);
      };
      float* to = reinterpret_cast<float*>(block.sums);
      if (block.rows <= kTileUnits)
        AmxBlock<1, 2, true>(tiles, left, right, to, kInt8Cols, false, finish);
      else
        AmxBlock<2, 2, true>(tiles, left, right, to, kInt8Cols, false, finish);
      before = block;
    }
  }
  TileStoreBarrier();
  FinishInt8<T>(p, before, 0, before.rows);
}

#else

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kVnni = true;
#else
constexpr bool kVnni = false;
#endif

#if defined(__AVX512F__)
constexpr int kInt8TileRows = kVnni ? 12 : 4;
#elif defined(__AVX2__)
constexpr int kInt8TileRows = 6;
#else
constexpr int kInt8TileRows = 2;
#endif

CLOZE_INLINE void FetchToL2(const void* p) { __builtin_prefetch(p, 0, 2); }

#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(__AVXVNNI__)

constexpr int64_t kInt8Step = 1024;  // depth of which the widened rows of a tile stay in L1

// Widens n bytes, a multiple of 16, to 16 bits.
CLOZE_INLINE void WidenBytes(int64_t n, const uint8_t* from, int16_t* to) {
  for (int64_t i = 0; i < n; i += 16) {
    const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(from + i)));
    _mm256_store_si256((__m256i*)(to + i), wide);
  }
}

// sums [M, 8] (+)= x w for 8 columns of a panel; x [M, kInt8Step]. A vector of 16 bits holds four
// products of each of four columns, so each column has two sums until the end. Fetches 4 depth
// bytes from `ahead` on.
template <int M>
void Int8Tile(int64_t depth, const int16_t* x, const int8_t* w, const int8_t* ahead, int32_t* sums,
    bool add) {
  VI sum[M][2] = {};
  for (int64_t k = 0; k < depth; k += kInt8Unit, x += kInt8Unit, w += kInt8Cols * kInt8Unit) {
    FetchToL2(ahead + 4 * k);
    const __m256i left = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)w)),
                  right = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(w + 16)));
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      int64_t unit;
      __builtin_memcpy(&unit, x + i * kInt8Step, sizeof(unit));
      const __m256i units = _mm256_set1_epi64x(unit);
      sum[i][0] += (VI)_mm256_madd_epi16(units, left);
      sum[i][1] += (VI)_mm256_madd_epi16(units, right);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i, sums += kInt8Cols) {
    const __m256i pairs = _mm256_hadd_epi32((__m256i)sum[i][0], (__m256i)sum[i][1]);
    VI columns = (VI)_mm256_permute4x64_epi64(pairs, 0xD8);
    if (add) columns += LoadInts(sums);
    __builtin_memcpy(sums, &columns, sizeof(columns));
  }
}

// Sums [M, 32] of M rows from row m on and the panel at w. Widening the weights alone would leave
// the bytes of rows to be widened for each column. Fetches half a panel from `ahead` on.
template <int M>
void Int8TileSums(
    const Int8Rows& x, int64_t m, const int8_t* w, const int8_t* ahead, int32_t* sums) {
  alignas(32) int16_t wide[M * kInt8Step];
  for (int64_t k = 0; k < x.depth; k += kInt8Step) {
    const int64_t depth = MinI(kInt8Step, x.depth - k);
    for (int i = 0; i < M; ++i)
      WidenBytes(depth, x.q + (m + i) * x.depth + k, wide + i * kInt8Step);
    for (int64_t n = 0; n < kInt8Cols; n += 8, ahead += 4 * depth)
      Int8Tile<M>(depth, wide, w + k * kInt8Cols + n * kInt8Unit, ahead, sums + n, k > 0);
  }
}

#else

// Four products of u8 and s8 to each lane. Without VNNI they are widened to 16 bits first: sums of
// two products overflow these, and the instruction for bytes saturates.
CLOZE_INLINE VI DotInt8(VI sum, VI x, VI w) {
#if defined(__AVX512VNNI__)
  return (VI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__AVXVNNI__)
  return (VI)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
#else
  typedef int16_t VS __attribute__((vector_size(W * 4)));
  const VI even = x & 0x00FF00FF, odd = (VI)((VU)x >> 8) & 0x00FF00FF,
           w_even = (VI)((VS)w << 8 >> 8), w_odd = (VI)((VS)w >> 8);
#if defined(__AVX512F__)
  return sum + (VI)_mm512_madd_epi16((__m512i)even, (__m512i)w_even) +
         (VI)_mm512_madd_epi16((__m512i)odd, (__m512i)w_odd);
#else
  return sum + (VI)_mm_madd_epi16((__m128i)even, (__m128i)w_even) +
         (VI)_mm_madd_epi16((__m128i)odd, (__m128i)w_odd);
#endif
#endif
}

// sums [M, 2 W] = x w for 2 W columns of a panel. Fetches W depth bytes from `ahead` on.
template <int M>
void Int8Tile(
    int64_t depth, const uint8_t* x, const int8_t* w, const int8_t* ahead, int32_t* sums) {
  VI sum[M][2] = {};
  const int64_t row = depth;
  for (int64_t k = 0; k < depth; k += kInt8Unit, w += kInt8Cols * kInt8Unit) {
    FetchToL2(ahead + W * k);
    const VI left = LoadInts(w), right = LoadInts(w + 4 * W);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const VI unit = SplatInts(x + i * row + k);
      sum[i][0] = DotInt8(sum[i][0], unit, left);
      sum[i][1] = DotInt8(sum[i][1], unit, right);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    __builtin_memcpy(sums + i * kInt8Cols, &sum[i][0], sizeof(VI));
    __builtin_memcpy(sums + i * kInt8Cols + W, &sum[i][1], sizeof(VI));
  }
}

template <int M>
void Int8TileSums(
    const Int8Rows& x, int64_t m, const int8_t* w, const int8_t* ahead, int32_t* sums) {
  for (int64_t n = 0; n < kInt8Cols; n += 2 * W, ahead += W * x.depth)
    Int8Tile<M>(x.depth, x.q + m * x.depth, w + n * kInt8Unit, ahead, sums + n);
}

#endif

// Computes sums [rows, 32] of `rows` rows from row m on, at most kInt8TileRows, and the panel at w.
// Fetches half a panel from `ahead` on.
CLOZE_INLINE void Int8Sums(const Int8Rows& x, int64_t m, int64_t rows, const int8_t* w,
    const int8_t* ahead, int32_t* sums) {
  WithConstant<kInt8TileRows>(rows, [&]<int M>() { Int8TileSums<M>(x, m, w, ahead, sums); });
}

// Calls f(tile, its first row, its rows) for tiles of nearly equal height.
template <typename F>
CLOZE_INLINE void ForInt8Tiles(int64_t rows, F f) {
  const int64_t tiles = CeilDiv(rows, kInt8TileRows);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t row = rows * i / tiles;
    f(i, row, rows * (i + 1) / tiles - row);
  }
}

// The first two tiles of a panel fetch the halves of the next one from memory, which would be idle
// while all tiles read the panel from the cache.
template <typename T>
void Int8Product(const Int8ProductArgs& p) {
  alignas(64) int32_t sums[kInt8TileRows * kInt8Cols];
  const int64_t panel = kInt8Cols * p.x.depth;
  const int8_t* w = p.q;
  for (int64_t col = 0; col < p.cols; col += kInt8Cols, w += panel) {
    ForInt8Tiles(p.x.rows, [&](int64_t i, int64_t row, int64_t rows) {
      const int8_t* const ahead = i < 2 ? w + panel + i * panel / 2 : w;
      Int8Sums(p.x, row, rows, w, ahead, sums);
      FinishInt8<T>(p, {row, rows, col, sums}, 0, rows);
    });
  }
}

#endif

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_INT8_PRODUCT_H_
