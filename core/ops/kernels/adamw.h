// The AdamW update and sums of squares.
#ifndef CLOZE_CORE_OPS_KERNELS_ADAMW_H_
#define CLOZE_CORE_OPS_KERNELS_ADAMW_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

struct AdamW {
  float rate, beta1, beta2, epsilon, decay, grad_scale;
  bool bias_correction;
  int64_t step;  // from 1
};
struct AdamArgs {
  AdamW options;
  float correction1, correction2_root;  // of the bias of m and of v
  int64_t n = 0;
  float *value = nullptr, *grad = nullptr, *m = nullptr, *v = nullptr;  // grad becomes zero
};

#ifdef CLOZE_ISA
namespace {

// Loshchilov & Hutter 2019, in the order of torch.optim.AdamW.
void AdamWUpdate(const AdamArgs& a) {
  const AdamW o = a.options;
  const float shrink = 1.0f - o.rate * o.decay, step = o.rate / a.correction1,
              root = 1.0f / a.correction2_root;
  ForLanes(a.n, [&](auto at) {
    const VF g = at(a.grad) * o.grad_scale;
    const VF m = at(a.m) * o.beta1 + g * (1.0f - o.beta1);
    const VF v = at(a.v) * o.beta2 + g * g * (1.0f - o.beta2);
    VF denominator;
    for (int i = 0; i < W; ++i) denominator[i] = __builtin_sqrtf(v[i]);
    at.Set(a.m, m);
    at.Set(a.v, v);
    at.Set(a.value, at(a.value) * shrink - step * m / (denominator * root + o.epsilon));
    at.Set(a.grad, VF{});
  });
}

// Returns the sum of g^2 / max(v, epsilon^2), with the bias-corrected v of the step to come.
double SumUpdateRatios(const AdamArgs& a) {
  typedef double VD __attribute__((vector_size(W * 8)));
  const AdamW o = a.options;
  const float unbiased = 1.0f / (a.correction2_root * a.correction2_root);
  const float square_of_epsilon = o.epsilon * o.epsilon;
  const VF least = Splat(square_of_epsilon > 1.2e-38f ? square_of_epsilon : 1.2e-38f);  // not 0 / 0
  VD total = {};
  ForLanes(a.n, [&](auto at) {
    const VF g = at(a.grad) * o.grad_scale, square = g * g;
    const VF v = (at(a.v) * o.beta2 + square * (1.0f - o.beta2)) * unbiased;
    total += __builtin_convertvector(square / (v > least ? v : least), VD);
  });
  double sum = 0;
  for (int i = 0; i < W; ++i) sum += total[i];
  return sum;
}

// Returns the sum of squares of n elements.
double SumSquares(int64_t n, const float* x) {
  constexpr int64_t kAhead = 512;
  typedef double VD __attribute__((vector_size(W * 8)));
  VD total[4] = {};
  const auto add = [&](VF v, int i) {
    const VD d = __builtin_convertvector(v, VD);
    total[i] += d * d;
  };
  const int64_t part = n / (4 * W) * W;  // four streams read memory faster than one
  for (int64_t c = 0; c < part; c += W) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __builtin_prefetch(x + i * part + c + kAhead);
      add(Load(x + i * part + c), i);
    }
  }
  ForLanes(n - 4 * part, [&](auto at) { add(at(x + 4 * part), 0); });
  double sum = 0;
  for (const VD& t : total) {
    for (int i = 0; i < W; ++i) sum += t[i];
  }
  return sum;
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ADAMW_H_
