// Softmax cross entropy of a row.
#ifndef CLOZE_CORE_OPS_KERNELS_LOSS_H_
#define CLOZE_CORE_OPS_KERNELS_LOSS_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

struct LossRow {
  float loss;
  int32_t best;  // index of the largest logit
};

#ifdef CLOZE_ISA
namespace {

// Returns the loss of n logits against `target`. Unless gradient_scale is 0, the logits become
// their gradient times gradient_scale.
template <typename T>
LossRow SoftmaxLoss(int64_t n, void* logits, int32_t target, float gradient_scale) {
  T* x = static_cast<T*>(logits);
  const auto value = [](const T* p) {
    const VF v = LoadPart(p, 1);
    return v[0];
  };
  // Finds the largest logit by blocks, then in the first block that contains it.
  constexpr int64_t kBlock = 1024;
  const VF lowest = Splat(-3.4e38f);
  float max = -3.4e38f;
  int64_t best = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    VF top = lowest;
    ForLanes(MinI(kBlock, n - begin),
        [&](auto at) { top = Max(top, at.Only(Splat(1.0f)) > VF{} ? at(x + begin) : lowest); });
    if (const float here = MaxLane(top); here > max) max = here, best = begin;
  }
  for (int64_t c = best; c < n; ++c) {
    if (value(x + c) != max) continue;
    best = c;
    break;
  }
  VF total = {};
  ForLanes(n, [&](auto at) { total += at.Only(Exp(at(x) - max)); });
  const float sum = Sum(total), first = value(x + target);
  const LossRow result = {__builtin_logf(sum) + max - first, static_cast<int32_t>(best)};
  if (gradient_scale == 0.0f) return result;
  const float factor = gradient_scale / sum;
  ForLanes(n, [&](auto at) { at.Set(x, Exp(at(x) - max) * factor); });
  StorePart(x + target, Splat(__builtin_expf(first - max) * factor - gradient_scale), 1);
  return result;
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_LOSS_H_
