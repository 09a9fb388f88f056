// Residual sum, dropout and layer norm in one pass; the backward pass also accumulates all column
// sums.
#ifndef CLOZE_CORE_OPS_KERNELS_NORM_H_
#define CLOZE_CORE_OPS_KERNELS_NORM_H_

#include "core/ops/kernels/dropout.h"
#include "core/ops/kernels/simd.h"

namespace cloze {

// Statistics of each row, [rows].
struct NormStats {
  float *mean = nullptr, *rstd = nullptr;
};
struct NormParams {
  const float *gain, *bias;  // [cols]; bias null: 0
  float epsilon;
};

// z = residual + in(x); y = out(norm(z) * gain + bias), in and out being dropout.
struct NormArgs {
  int64_t rows, cols;
  const void *x, *residual;  // T; x null: z = residual
  void *z, *y;               // T; z null: not kept
  NormStats stats;
  NormParams params;
  RowDropout in, out;  // on x, on y
};

// dz = norm'(out-dropout'(dy)) + dz_in; dx = in-dropout'(dz). Accumulates dgain, dbias [cols] and,
// in dxsum, the column sums of dx. Of `forward`, x, residual and y are not read.
struct NormGradArgs {
  NormArgs forward;
  const void *dy, *dz_in;        // T; dz_in may be null
  void *dz, *dx;                 // T; dx null: not needed, or dz when there is no dropout
  float *dgain, *dbias, *dxsum;  // dxsum may be null
};

#ifdef CLOZE_ISA
namespace {

// Returns the factors of `d` for a row, or null without dropout.
CLOZE_INLINE const float* FactorsOf(const RowDropout& d, int64_t row, int64_t cols, float* buffer) {
  if (d.threshold == 0) return nullptr;
  DropoutFactors(d, row, 0, cols, buffer);
  return buffer;
}

// Returns row `row` of a matrix of T, a const type if `m` is, or null if m is null.
template <typename T, typename Void>
CLOZE_INLINE T* RowOf(Void* m, int64_t row, int64_t cols) {
  return m == nullptr ? nullptr : static_cast<T*>(m) + row * cols;
}

template <typename T>
void NormForward(const NormArgs& a) {
  alignas(64) float buffer[kMaxDropoutRow], sum[kMaxDropoutRow];
  const int64_t cols = a.cols;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T *x = RowOf<const T>(a.x, r, cols), *residual = RowOf<const T>(a.residual, r, cols);
    T *z = RowOf<T>(a.z, r, cols), *y = RowOf<T>(a.y, r, cols);
    const float* factor = FactorsOf(a.in, r, cols, buffer);
    const float total = SumOver(cols, [&](auto at) {
      VF v = residual != nullptr ? at(residual) : VF{};
      if (x != nullptr) v += factor != nullptr ? at(x) * at(factor) : at(x);
      at.Set(sum, v);
      if (z != nullptr) at.Set(z, v);
      return v;
    });
    const float mean = total / cols;
    const float squares = SumOver(cols, [&](auto at) {
      const VF d = at.Only(at(sum) - mean);
      return d * d;
    });
    const float rstd = 1.0f / __builtin_sqrtf(squares / cols + a.params.epsilon);
    a.stats.mean[r] = mean;
    a.stats.rstd[r] = rstd;
    factor = FactorsOf(a.out, r, cols, buffer);
    ForLanes(cols, [&](auto at) {
      const VF bias = a.params.bias == nullptr ? VF{} : VF(at(a.params.bias));
      VF v = (at(sum) - mean) * rstd * at(a.params.gain) + bias;
      if (factor != nullptr) v *= at(factor);
      at.Set(y, v);
    });
  }
}

// With h = (z - mean) rstd and g = dy gain: dz = rstd (g - avg(g) - h avg(g h)).
template <typename T>
void NormBackward(const NormGradArgs& g) {
  const NormArgs& a = g.forward;
  alignas(64) float buffer[kMaxDropoutRow], scaled[kMaxDropoutRow];
  const int64_t cols = a.cols;
  for (int64_t r = 0; r < a.rows; ++r) {
    const T *dy = RowOf<const T>(g.dy, r, cols), *z = RowOf<const T>(a.z, r, cols),
            *dz_in = RowOf<const T>(g.dz_in, r, cols);
    T *dz = RowOf<T>(g.dz, r, cols), *dx = RowOf<T>(g.dx, r, cols);
    const float mean = a.stats.mean[r], rstd = a.stats.rstd[r];
    const float* factor = FactorsOf(a.out, r, cols, buffer);
    VF sum_g = {}, sum_gh = {};
    ForLanes(cols, [&](auto at) {
      VF d = at(dy);
      if (factor != nullptr) d *= at(factor);
      const VF h = (at(z) - mean) * rstd, dh = d * at(a.params.gain);
      at.Set(g.dgain, at(g.dgain) + d * h);
      at.Set(g.dbias, at(g.dbias) + d);
      at.Set(scaled, dh);
      sum_g += dh;
      sum_gh += dh * h;
    });
    const float avg_g = Sum(sum_g) / cols, avg_gh = Sum(sum_gh) / cols;
    factor = FactorsOf(a.in, r, cols, buffer);
    ForLanes(cols, [&](auto at) {
      const VF h = (at(z) - mean) * rstd;
      VF d = rstd * (at(scaled) - avg_g - h * avg_gh);
      if (dz_in != nullptr) d += at(dz_in);
      at.Set(dz, d);
      if (factor != nullptr) d *= at(factor);
      if (dx != nullptr && dx != dz) at.Set(dx, d);
      if (g.dxsum != nullptr) at.Set(g.dxsum, at(g.dxsum) + d);
    });
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_NORM_H_
