// Activation functions.
#ifndef CLOZE_CORE_OPS_KERNELS_ACTIVATION_H_
#define CLOZE_CORE_OPS_KERNELS_ACTIVATION_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

enum class ActivationKind : uint8_t { kGelu, kGeluTanh, kRelu, kTanh, kSilu };

#ifdef CLOZE_ISA
namespace {

struct ValueAndSlope {
  VF value, slope;
};

// GELU for bf16 results in half the time, with errors up to 2e-6 in the value (3e-8 u for |u| > 8)
// and 2e-5 in the slope. With z = u clamped to +-5, Phi(u) - 1/2 and slope - 1/2 are z times
// minimax polynomials in 2 (z / 5)^2 - 1.
CLOZE_INLINE ValueAndSlope RoughGelu(VF u) {
  const VF z = Min(Max(u, Splat(-5.0f)), Splat(5.0f)), t = z * z * 0.08f - 1.0f;
  const VF p = Polynomial(t, {-0.00104483427f, 0.00317374896f, -0.0040079318f, 0.00515576359f,
                                 -0.0100634918f, 0.0168802962f, -0.023661878f, 0.031365037f,
                                 -0.0403866433f, 0.0515246168f, -0.0702984408f, 0.141363755f});
  const VF s = Polynomial(t, {-0.0207204018f, 0.0465147085f, -0.0277211089f, 0.0212280322f,
                                 -0.0684484243f, 0.0951200128f, -0.0853552967f, 0.0770893767f,
                                 -0.0715419576f, 0.0668261796f, -0.0751227811f, 0.142130584f});
  return {u * (p * z + 0.5f), s * z + 0.5f};
}

// Value and slope of an activation at u. GELU: u Phi(u). Tanh form: 0.5 u (1 + tanh(sqrt(2/pi) (u +
// 0.044715 u^3))) (Hendrycks & Gimpel). SiLU: u / (1 + e^-u).
template <typename T, ActivationKind kind>
CLOZE_INLINE ValueAndSlope Activate(VF u) {
  if constexpr (kind == ActivationKind::kGelu && sizeof(T) == 2) {
    return RoughGelu(u);
  } else if constexpr (kind == ActivationKind::kGelu) {
    const Normal normal = NormalOf(u);
    return {u * normal.cumulative, normal.cumulative + u * normal.density};
  } else if constexpr (kind == ActivationKind::kGeluTanh) {
    constexpr float a = 0.79788456f, b = 0.044715f;
    const VF g = 1.0f / (1.0f + Exp(-2.0f * a * (u + b * u * u * u)));  // (1 + tanh(y)) / 2
    return {u * g, g + 2.0f * u * g * (1.0f - g) * a * (1.0f + 3.0f * b * u * u)};
  } else if constexpr (kind == ActivationKind::kTanh) {
    const VF t = 2.0f / (1.0f + Exp(-2.0f * u)) - 1.0f;
    return {t, 1.0f - t * t};
  } else if constexpr (kind == ActivationKind::kSilu) {
    const VF g = 1.0f / (1.0f + Exp(-u));
    return {u * g, g + u * g * (1.0f - g)};
  } else {
    const VF zero = {};
    return {u > zero ? u : zero, u > zero ? Splat(1.0f) : zero};
  }
}

// Calls f<kind>().
template <typename F>
CLOZE_INLINE void WithKind(ActivationKind kind, F f) {
  switch (kind) {
    case ActivationKind::kGelu: return f.template operator()<ActivationKind::kGelu>();
    case ActivationKind::kGeluTanh: return f.template operator()<ActivationKind::kGeluTanh>();
    case ActivationKind::kRelu: return f.template operator()<ActivationKind::kRelu>();
    case ActivationKind::kTanh: return f.template operator()<ActivationKind::kTanh>();
    case ActivationKind::kSilu: return f.template operator()<ActivationKind::kSilu>();
  }
}

// y = act(u), n elements.
template <typename T>
void ActivationForward(ActivationKind kind, int64_t n, const void* u, void* y) {
  const T* from = static_cast<const T*>(u);
  T* to = static_cast<T*>(y);
  WithKind(kind, [=]<ActivationKind k>() {
    ForLanes(n, [&](auto at) { at.Set(to, Activate<T, k>(at(from)).value); });
  });
}

template <typename T, ActivationKind kind>
void ActivationBackwardKind(
    int64_t rows, int64_t cols, const T* u, const T* dy, T* y, T* du, float* bias_sum) {
  for (int64_t r = 0; r < rows; ++r, u += cols, dy += cols, y += cols, du += cols) {
    ForLanes(cols, [&](auto at) {
      const ValueAndSlope a = Activate<T, kind>(at(u));
      const VF g = at(dy) * a.slope;
      at.Set(y, a.value);
      at.Set(du, g);
      at.Set(bias_sum, at(bias_sum) + g);
    });
  }
}

// y = act(u); du = dy act'(u), may be dy; bias_sum [cols] += column sums of du.
template <typename T>
void ActivationBackward(ActivationKind kind, int64_t rows, int64_t cols, const void* u,
    const void* dy, void* y, void* du, float* bias_sum) {
  WithKind(kind, [&]<ActivationKind k>() {
    ActivationBackwardKind<T, k>(rows, cols, static_cast<const T*>(u), static_cast<const T*>(dy),
        static_cast<T*>(y), static_cast<T*>(du), bias_sum);
  });
}

// y = act(a) g for the halves a, g of each row of u [rows, 2 cols].
template <typename T>
void GatedForward(ActivationKind kind, int64_t rows, int64_t cols, const void* u, void* y) {
  WithKind(kind, [=]<ActivationKind k>() {
    for (int64_t r = 0; r < rows; ++r) {
      const T *a = static_cast<const T*>(u) + 2 * r * cols, *g = a + cols;
      T* to = static_cast<T*>(y) + r * cols;
      ForLanes(cols, [&](auto at) { at.Set(to, Activate<T, k>(at(a)).value * at(g)); });
    }
  });
}

// Replaces dy by y; du [rows, 2 cols] is the gradient of u.
template <typename T>
void GatedBackward(
    ActivationKind kind, int64_t rows, int64_t cols, const void* u, void* dy, void* du) {
  WithKind(kind, [=]<ActivationKind k>() {
    for (int64_t r = 0; r < rows; ++r) {
      const T *a = static_cast<const T*>(u) + 2 * r * cols, *g = a + cols;
      T *d = static_cast<T*>(dy) + r * cols, *da = static_cast<T*>(du) + 2 * r * cols,
        *dg = da + cols;
      ForLanes(cols, [&](auto at) {
        const ValueAndSlope act = Activate<T, k>(at(a));
        const VF gate = at(g), dout = at(d);
        at.Set(da, dout * gate * act.slope);
        at.Set(dg, dout * act.value);
        at.Set(d, act.value * gate);
      });
    }
  });
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ACTIVATION_H_
