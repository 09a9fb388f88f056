// Operands of int8 products: rows quantized to u8 when they are used, weights quantized to s8 when
// they are packed, exact sums in s32. With scale s and zero point z of each row, x = s_x (q_x -
// z_x); with a scale of each column, w = s_w q_w; so y = s_x s_w (sum of q_x q_w - z_x sum of q_w)
// + bias (Jacob et al. 2018).
#ifndef CLOZE_CORE_OPS_KERNELS_INT8_H_
#define CLOZE_CORE_OPS_KERNELS_INT8_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

// Columns of a panel of weights, depth of a unit, and the multiple to which depths are padded.
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

// Quantized rows, `depth` bytes apart. Products read memory of rows up to a multiple of
// kInt8RowBlock, whose content does not matter.
constexpr int64_t kInt8RowBlock = 32;
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

// Rounds |v| < 2^22 to the nearest integer, ties to even.
CLOZE_INLINE VI NearestInt(VF v) { return AsInt(v + kRounder) - AsInt(Splat(kRounder)); }

// Stores the first `at.n` lanes of v as bytes.
template <typename P>
CLOZE_INLINE void StoreBytesAt(const P& at, uint8_t* row, VI v) {
  if (at.n == W) return StoreBytes(row + at.c, v);
  uint8_t part[W];
  StoreBytes(part, v);
  __builtin_memcpy(row + at.c, part, at.n);
}

// Panels of one column at a time; called once for each weight.
void PackInt8(const Int8PackArgs& p) {
  constexpr int64_t kPanelRow = kInt8Cols * kInt8Unit;
  for (int64_t n = 0; n < RoundUp(p.cols, kInt8Cols); ++n) {
    int8_t* to = p.q + n / kInt8Cols * p.padded * kInt8Cols + n % kInt8Cols * kInt8Unit;
    const float* from = p.from + n * p.stride;
    const int64_t depth = n < p.cols ? p.depth : 0;
    VF most = {};
    ForLanes(depth, [&](auto at) {
      const VF v = at(from);
      most = Max(most, Abs(v));
    });
    const float scale = MaxLane(most) / 127;
    const float inverse = scale > 1e-35f ? 1 / scale : 0;
    VI sums = {};
    int64_t end = 0;
    ForLanes(depth, [&](auto at) {
      const VI q = NearestInt(at(from) * inverse);
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

// The smallest and the largest of 0 and the values of a row.
struct Range {
  float least, most;
};
CLOZE_INLINE Range RangeOf(int64_t n, const float* x) {
  VF most = {}, least = {};
  ForLanes(n, [&](auto at) {
    const VF v = at(x);
    most = Max(most, v);
    least = Max(least, -v);
  });
  return {-MaxLane(least), MaxLane(most)};
}
// The bits of bf16 can be compared as integers: the largest signed one is the largest value >= 0,
// the largest unsigned one the smallest value <= 0.
CLOZE_INLINE Range RangeOf(int64_t n, const bf16* x) {
  typedef int16_t VS __attribute__((vector_size(W * 4)));
  typedef uint16_t VUS __attribute__((vector_size(W * 4)));
  VS most = {};
  VUS least = VUS{} + uint16_t{0x8000};
  const auto add = [&](VS v) {
    most = v > most ? v : most;
    least = (VUS)v > least ? (VUS)v : least;
  };
  VS v;
  int64_t c = 0;
  for (; c + 2 * W <= n; c += 2 * W) {
    __builtin_memcpy(&v, x + c, sizeof(v));
    add(v);
  }
  v = VS{};
  __builtin_memcpy(&v, x + c, (n - c) * sizeof(*x));
  add(v);
  const auto lanes = [](VI bits, float sign) {
    return sign * MaxLane(Max(AsFloat(bits << 16) * sign, AsFloat(bits & ~0xFFFF) * sign));
  };
  return {lanes((VI)least, -1), lanes((VI)most, 1)};
}

// Stores 4 W values, rounded to the nearest bytes.
#if defined(__AVX512BW__)
CLOZE_INLINE void StoreRounded(uint8_t* to, const VF (&v)[4]) {
  __m512i i[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) i[k] = _mm512_maskz_cvtps_epi32(-1, (__m512)v[k]);
  const __m512i bytes =
      _mm512_packus_epi16(_mm512_packs_epi32(i[0], i[1]), _mm512_packs_epi32(i[2], i[3]));
  const VI order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const __m512i rows = _mm512_maskz_permutexvar_epi32(-1, (__m512i)order, bytes);
  __builtin_memcpy(to, &rows, sizeof(rows));
}
#elif defined(__AVX2__)
CLOZE_INLINE void StoreRounded(uint8_t* to, const VF (&v)[4]) {
  __m256i i[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) i[k] = _mm256_cvtps_epi32((__m256)v[k]);
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3]));
  const VI order = {0, 4, 1, 5, 2, 6, 3, 7};
  const __m256i rows = _mm256_permutevar8x32_epi32(bytes, (__m256i)order);
  __builtin_memcpy(to, &rows, sizeof(rows));
}
#endif

// Each row has its own scale and zero point, so that its bits do not depend on other rows.
template <typename T>
void QuantizeRows(const QuantizeArgs& a) {
  for (int64_t r = 0; r < a.to.rows; ++r) {
    const T* x = static_cast<const T*>(a.x) + r * a.stride;
    uint8_t* q = a.to.q + r * a.to.depth;
    const Range range = RangeOf(a.cols, x);
    const float width = range.most - range.least, inverse = width > 1e-35f ? 255 / width : 0,
                zero = __builtin_rintf(-range.least * inverse);
    a.to.scale[r] = width / 255;
    a.to.zero[r] = static_cast<int32_t>(zero);
    int64_t c = 0;
#ifdef __AVX2__
    for (; c + 4 * W <= a.cols; c += 4 * W) {
      VF v[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) v[k] = Load(x + c + k * W) * inverse + zero;
      StoreRounded(q + c, v);
    }
#endif
    const VF least = {}, most = Splat(255);
    ForLanes(a.cols - c, [&](auto at) {
      StoreBytesAt(at, q + c, NearestInt(Max(Min(at(x + c) * inverse + zero, most), least)));
    });
    __builtin_memset(q + a.cols, 0, a.to.depth - a.cols);
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_INT8_H_
