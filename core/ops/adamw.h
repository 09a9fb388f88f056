// The AdamW optimizer over flat arrays, and the norm for gradient clipping.
#ifndef CLOZE_CORE_OPS_ADAMW_H_
#define CLOZE_CORE_OPS_ADAMW_H_

#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

// Returns the sum of squares in double, added in a fixed order.
double SumSquares(absl::Span<const float> x);

struct AdamW {
  float rate, beta1, beta2, epsilon, decay, grad_scale;
  bool bias_correction;
  int64_t step;  // from 1
};
// One AdamW step (Loshchilov & Hutter 2019) over n values; gradients become zero.
void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ADAMW_H_
