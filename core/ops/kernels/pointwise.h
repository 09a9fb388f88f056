// Activation, dropout, embedding, softmax loss, sums, AdamW: one pass over memory each. Included by
// table.cc.
#ifndef CLOZE_CORE_OPS_KERNELS_POINTWISE_H_
#define CLOZE_CORE_OPS_KERNELS_POINTWISE_H_

#include "core/ops/kernels/dropout.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/kernels/simd.h"

namespace cloze {
namespace {

struct ValueAndSlope {
  VF value, slope;
};

// Highest power first.
template <int n>
CLOZE_INLINE VF Polynomial(VF x, const float (&c)[n]) {
  VF p = Splat(c[0]);
  for (int i = 1; i < n; ++i) p = p * x + c[i];
  return p;
}

// GELU for results in bf16, value to 2e-6 (beyond 8 to 3e-8 u) and slope to 2e-5, in half the time:
// Phi(u) - 1/2 and the slope less 1/2 are z times polynomials in 2 (z / 5)^2 - 1, of least greatest
// error on |u| <= 5, where z = u; beyond, z = +-5.
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
// 0.044715 u^3))) (Hendrycks & Gimpel).
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
  } else {
    const VF zero = {};
    return {u > zero ? u : zero, u > zero ? Splat(1.0f) : zero};
  }
}

template <typename T, ActivationKind kind>
void ActivationForwardKind(int64_t n, const T* u, T* y) {
  Sweep(n, [&](auto at) { at.Set(y, Activate<T, kind>(at(u)).value); });
}

template <typename T>
void ActivationForward(ActivationKind kind, int64_t n, const void* u, void* y) {
  const auto run = [&]<ActivationKind k>() {
    ActivationForwardKind<T, k>(n, static_cast<const T*>(u), static_cast<T*>(y));
  };
  switch (kind) {
    case ActivationKind::kGelu: return run.template operator()<ActivationKind::kGelu>();
    case ActivationKind::kGeluTanh: return run.template operator()<ActivationKind::kGeluTanh>();
    case ActivationKind::kRelu: return run.template operator()<ActivationKind::kRelu>();
    case ActivationKind::kTanh: return run.template operator()<ActivationKind::kTanh>();
  }
}

template <typename T, ActivationKind kind>
void ActivationBackwardKind(
    int64_t rows, int64_t cols, const T* u, const T* dy, T* y, T* du, float* bias_sum) {
  for (int64_t r = 0; r < rows; ++r, u += cols, dy += cols, y += cols, du += cols) {
    Sweep(cols, [&](auto at) {
      const ValueAndSlope a = Activate<T, kind>(at(u));
      const VF g = at(dy) * a.slope;
      at.Set(y, a.value);
      at.Set(du, g);
      at.Set(bias_sum, at(bias_sum) + g);
    });
  }
}

template <typename T>
void ActivationBackward(ActivationKind kind, int64_t rows, int64_t cols, const void* u,
    const void* dy, void* y, void* du, float* bias_sum) {
  const auto run = [&]<ActivationKind k>() {
    ActivationBackwardKind<T, k>(rows, cols, static_cast<const T*>(u), static_cast<const T*>(dy),
        static_cast<T*>(y), static_cast<T*>(du), bias_sum);
  };
  switch (kind) {
    case ActivationKind::kGelu: return run.template operator()<ActivationKind::kGelu>();
    case ActivationKind::kGeluTanh: return run.template operator()<ActivationKind::kGeluTanh>();
    case ActivationKind::kRelu: return run.template operator()<ActivationKind::kRelu>();
    case ActivationKind::kTanh: return run.template operator()<ActivationKind::kTanh>();
  }
}

template <typename T>
void ColumnSum(int64_t rows, int64_t cols, const void* x, int64_t stride, float* sum) {
  const T* row = static_cast<const T*>(x);
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    Sweep(cols, [&](auto at) { at.Set(sum, at(sum) + at(row)); });
  }
}

template <typename T>
void Dropout(int64_t rows, int64_t cols, const void* x, void* y, const RowDropout& d) {
  alignas(64) float factor[kMaxDropoutRow];
  for (int64_t r = 0; r < rows; ++r) {
    const T* xr = static_cast<const T*>(x) + r * cols;
    T* yr = static_cast<T*>(y) + r * cols;
    DropoutFactors(d, r, cols, factor);
    Sweep(cols, [&](auto at) { at.Set(yr, at(xr) * at(factor)); });
  }
}

template <typename T>
void Embed(int64_t rows, int64_t cols, const float* a, const int32_t* ia, const float* b,
    const int32_t* ib, const float* c, const int32_t* ic, void* x) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *ar = a + ia[r] * cols, *br = b + ib[r] * cols, *cr = c + ic[r] * cols;
    T* xr = static_cast<T*>(x) + r * cols;
    Sweep(cols, [&](auto at) { at.Set(xr, at(ar) + at(br) + at(cr)); });
  }
}

template <typename T>
void SumRows(
    int64_t rows, int64_t cols, const void* x, const int32_t* index, float* out, bool accumulate) {
  Sweep(cols, [&](auto at) {
    VF sum = accumulate ? at(out) : VF{};
    for (int64_t r = 0; r < rows; ++r) sum += at(static_cast<const T*>(x) + index[r] * cols);
    at.Set(out, sum);
  });
}

template <typename T>
LossRow SoftmaxLoss(int64_t n, void* logits, int32_t target, float gradient_scale) {
  T* x = static_cast<T*>(logits);
  const auto value = [](const T* p) {
    const VF v = LoadPart(p, 1);
    return v[0];
  };
  constexpr int64_t kBlock =
      1024;  // the largest logit is looked for in blocks, then in the first block that has it
  const VF lowest = Splat(-3.4e38f);
  float max = -3.4e38f;
  int64_t best = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    VF top = lowest;
    Sweep(MinI(kBlock, n - begin),
        [&](auto at) { top = Max(top, at.Only(Splat(1.0f)) > VF{} ? at(x + begin) : lowest); });
    if (const float here = MaxLane(top); here > max) max = here, best = begin;
  }
  for (int64_t c = best; c < n; ++c) {
    if (value(x + c) != max) continue;
    best = c;
    break;
  }
  VF total = {};
  Sweep(n, [&](auto at) { total += at.Only(Exp(at(x) - max)); });
  const float sum = Sum(total), first = value(x + target);
  const LossRow result = {__builtin_logf(sum) + max - first, static_cast<int32_t>(best)};
  if (gradient_scale == 0.0f) return result;
  const float factor = gradient_scale / sum;
  Sweep(n, [&](auto at) { at.Set(x, Exp(at(x) - max) * factor); });
  StorePart(x + target, Splat(__builtin_expf(first - max) * factor - gradient_scale), 1);
  return result;
}

template <typename T>
void Combine(int64_t n, float a, const void* x, float b, void* y) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (b == 0.0f) return Sweep(n, [&](auto at) { at.Set(to, a * at(from)); });
  Sweep(n, [&](auto at) { at.Set(to, a * at(from) + b * at(to)); });
}

template <typename From, typename To>
void Convert(int64_t n, const void* from, void* to) {
  Sweep(n, [&](auto at) { at.Set(static_cast<To*>(to), at(static_cast<const From*>(from))); });
}

// Loshchilov & Hutter 2019, as torch.optim.AdamW orders it.
void AdamW(const AdamArgs& a) {
  const float shrink = 1.0f - a.rate * a.decay, step = a.rate / a.correction1,
              root = 1.0f / a.correction2_root;
  Sweep(a.n, [&](auto at) {
    const VF g = at(a.grad) * a.grad_scale;
    const VF m = at(a.m) * a.beta1 + g * (1.0f - a.beta1);
    const VF v = at(a.v) * a.beta2 + g * g * (1.0f - a.beta2);
    VF denominator;
    for (int i = 0; i < W; ++i) denominator[i] = __builtin_sqrtf(v[i]);
    at.Set(a.m, m);
    at.Set(a.v, v);
    at.Set(a.value, at(a.value) * shrink - step * m / (denominator * root + a.epsilon));
    at.Set(a.grad, VF{});
  });
}

double SumSquares(int64_t n, const float* x) {
  constexpr int64_t kAhead = 512;
  typedef double VD __attribute__((vector_size(W * 8)));
  VD total[4] = {};
  const auto add = [&](VF v, int i) {
    const VD d = __builtin_convertvector(v, VD);
    total[i] += d * d;
  };
  const int64_t part = n / (4 * W) * W;  // memory is read faster in four places at once
  for (int64_t c = 0; c < part; c += W) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __builtin_prefetch(x + i * part + c + kAhead);
      add(Load(x + i * part + c), i);
    }
  }
  Sweep(n - 4 * part, [&](auto at) { add(at(x + 4 * part), 0); });
  double sum = 0;
  for (const VD& t : total) {
    for (int i = 0; i < W; ++i) sum += t[i];
  }
  return sum;
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_POINTWISE_H_
