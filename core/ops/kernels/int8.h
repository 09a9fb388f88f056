// Operands of int8 products: rows quantized to u8 when they are used, weights quantized to s8 when
// they are packed, exact sums in s32. With scale s and zero point z of each row, x = s_x (q_x -
// z_x); with a scale of each column, w = s_w q_w; so y = s_x s_w (sum of q_x q_w - z_x sum of q_w)
// + bias (Jacob et al. 2018).
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

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_INT8_H_
