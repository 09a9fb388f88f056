// Products of int8: rows quantized to u8 when they are used, weights quantized to s8 when they are
// packed, exact sums in s32. With scale s and zero point z of each row, x = s_x (q_x - z_x); with a
// scale of each column, w = s_w q_w; so y = s_x s_w (sum of q_x q_w - z_x sum of q_w) + bias
// (Jacob et al. 2018).
#ifndef CLOZE_CORE_OPS_KERNELS_INT8_H_
#define CLOZE_CORE_OPS_KERNELS_INT8_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

// Columns of a panel of weights, depth of a unit, and what depths are rounded up to.
constexpr int64_t kInt8Cols = 32, kInt8Unit = 4, kInt8Depth = 64;

// Packs `cols` columns of a weight, `stride` floats apart, into panels. Element (k, n) of a panel
// is at q[k / 4 * 128 + n * 4 + k % 4]. Columns are padded to whole panels and depth to `padded`,
// with zeros.
struct Int8PackArgs {
  int64_t depth, padded, cols, stride;
  const float* from;
  int8_t* q;     // [panels, padded * 32]
  float* scale;  // [panels, 32]
  int32_t* sum;  // [panels, 32] sums of the columns of q
};

// Quantized rows, `depth` bytes apart.
struct Int8Rows {
  int64_t rows, depth;
  uint8_t* q;
  float* scale;
  int32_t* zero;
};
struct QuantizeArgs {
  int64_t cols, stride;
  const void* x;  // T
  Int8Rows to;    // its bytes from `cols` on become zero
};

// y [rows, cols] = x w^T + bias.
struct Int8ProductArgs {
  int64_t cols, y_stride;
  Int8Rows x;
  const int8_t* q;  // as packed
  const float* scale;
  const int32_t* sum;
  const float* bias;  // or null
  void* y;            // T
};

#ifdef CLOZE_ISA
namespace {

CLOZE_INLINE void StoreBytes(uint8_t* to, VI v) {
#ifdef __AVX512F__
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(-1, (__m512i)v);
  __builtin_memcpy(to, &bytes, sizeof(bytes));
#else
  typedef uint8_t VB __attribute__((vector_size(W)));
  const VB bytes = __builtin_convertvector(v, VB);
  __builtin_memcpy(to, &bytes, sizeof(bytes));
#endif
}

// Panels of one column at a time; called once for each weight.
void PackInt8(const Int8PackArgs& p) {
  constexpr int64_t kPanelRow = kInt8Cols * kInt8Unit;
  for (int64_t n = 0; n < (p.cols + kInt8Cols - 1) / kInt8Cols * kInt8Cols; ++n) {
    int8_t* to = p.q + n / kInt8Cols * p.padded * kInt8Cols + n % kInt8Cols * kInt8Unit;
    const float* from = p.from + n * p.stride;
    const int64_t depth = n < p.cols ? p.depth : 0;
    VF most = {};
    Sweep(depth, [&](auto at) {
      const VF v = at(from);
      most = Max(most, Max(v, -v));
    });
    const float scale = MaxLane(most) / 127;
    const float inverse = scale > 1e-35f ? 1 / scale : 0;
    VI sums = {};
    int64_t end = 0;
    Sweep(depth, [&](auto at) {
      // Adding 1.5 * 2^23 rounds to an integer, ties to even.
      const VI q = AsInt(at(from) * inverse + 12582912.0f) - 0x4B400000;
      uint8_t bytes[W];
      StoreBytes(bytes, q);
      for (int64_t i = 0; i < W; i += kInt8Unit)
        __builtin_memcpy(to + (at.c + i) / kInt8Unit * kPanelRow, bytes + i, kInt8Unit);
      sums += q;
      end = at.c + W;
    });
    for (; end < p.padded; end += kInt8Unit)
      __builtin_memset(to + end / kInt8Unit * kPanelRow, 0, kInt8Unit);
    p.scale[n] = scale;
    p.sum[n] = 0;
    for (int i = 0; i < W; ++i) p.sum[n] += sums[i];
  }
}

// Each row has its own scale and zero point, so that its bits do not depend on other rows.
template <typename T>
void QuantizeRows(const QuantizeArgs& a) {
  for (int64_t r = 0; r < a.to.rows; ++r) {
    const T* x = static_cast<const T*>(a.x) + r * a.stride;
    uint8_t* q = a.to.q + r * a.to.depth;
    VF high = {}, low = {};
    Sweep(a.cols, [&](auto at) {
      const VF v = at(x);
      high = Max(high, v);
      low = Max(low, -v);
    });
    const float least = -MaxLane(low), range = MaxLane(high) - least;
    const float inverse = range > 1e-35f ? 255 / range : 0;
    const float zero = __builtin_rintf(-least * inverse);
    a.to.scale[r] = range / 255;
    a.to.zero[r] = static_cast<int32_t>(zero);
    const VF shift = Splat(12582912.0f + zero), least_q = Splat(12582912.0f),
             most_q = Splat(12582912.0f + 255);
    Sweep(a.cols, [&](auto at) {
      const VF rounded = at(x) * inverse + shift;
      const VI v = AsInt(Max(Min(rounded, most_q), least_q)) - 0x4B400000;
      if (at.n == W) return StoreBytes(q + at.c, v);
      uint8_t part[W];
      StoreBytes(part, v);
      __builtin_memcpy(q + at.c, part, at.n);
    });
    __builtin_memset(q + a.cols, 0, a.to.depth - a.cols);
  }
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kVnni = true;
#else
constexpr bool kVnni = false;
#endif

#if defined(__AVX512F__)
constexpr int kInt8TileRows = kVnni ? 12 : 4;
#else
constexpr int kInt8TileRows = kVnni ? 6 : 2;
#endif

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
#elif defined(__AVX2__)
  return sum + (VI)_mm256_madd_epi16((__m256i)even, (__m256i)w_even) +
         (VI)_mm256_madd_epi16((__m256i)odd, (__m256i)w_odd);
#else
  return sum + (VI)_mm_madd_epi16((__m128i)even, (__m128i)w_even) +
         (VI)_mm_madd_epi16((__m128i)odd, (__m128i)w_odd);
#endif
#endif
}

CLOZE_INLINE VI LoadInts(const void* p) {
  VI v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
CLOZE_INLINE VI SplatInts(const uint8_t* p) {
  int32_t unit;
  __builtin_memcpy(&unit, p, sizeof(unit));
  return unit + VI{};
}

// sums [M, 32] = x w for columns [2 W half, 2 W half + 2 W) of a panel.
template <int M>
void Int8Tile(int64_t depth, const uint8_t* x, const int8_t* w, int32_t* sums) {
  VI sum[M][2] = {};
  const int64_t row = depth;
  for (int64_t k = 0; k < depth; k += kInt8Unit, w += kInt8Cols * kInt8Unit) {
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

// Computes `rows` rows from row m on, at most kInt8TileRows, of the panel at w.
CLOZE_INLINE void Int8Sums(
    const Int8Rows& x, int64_t m, int64_t rows, const int8_t* w, int32_t* sums) {
  const auto tile = [&]<int M>() {
    for (int64_t n = 0; n < kInt8Cols; n += 2 * W)
      Int8Tile<M>(x.depth, x.q + m * x.depth, w + n * kInt8Unit, sums + n);
  };
  const auto choose = [&]<int M>(auto next) {
    if (rows == M) return tile.template operator()<M>();
    if constexpr (M > 1) next.template operator()<M - 1>(next);
  };
  const auto step = [&]<int M>(auto self) { choose.template operator()<M>(self); };
  step.template operator()<kInt8TileRows>(step);
}

template <typename T>
void Int8Product(const Int8ProductArgs& p) {
  alignas(64) int32_t sums[kInt8TileRows * kInt8Cols];
  const int64_t tiles = (p.x.rows + kInt8TileRows - 1) / kInt8TileRows;
  for (int64_t n = 0; n < p.cols; n += kInt8Cols) {
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t m = p.x.rows * i / tiles, rows = p.x.rows * (i + 1) / tiles - m;
      Int8Sums(p.x, m, rows, p.q + n * p.x.depth, sums);
      for (int64_t r = 0; r < rows; ++r) {
        T* y = static_cast<T*>(p.y) + (m + r) * p.y_stride + n;
        const float scale = p.x.scale[m + r];
        const int32_t zero = p.x.zero[m + r];
        Sweep(MinI(kInt8Cols, p.cols - n), [&](auto at) {
          const VI sum = LoadInts(sums + r * kInt8Cols + at.c) - zero * LoadInts(p.sum + n + at.c);
          VF v = __builtin_convertvector(sum, VF) * (scale * Load(p.scale + n + at.c));
          if (p.bias != nullptr) v += at(p.bias + n);
          at.Set(y, v);
        });
      }
    }
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_INT8_H_
