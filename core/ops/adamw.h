// The AdamW optimizer over flat arrays, and the norm for gradient clipping.
#ifndef CLOZE_CORE_OPS_ADAMW_H_
#define CLOZE_CORE_OPS_ADAMW_H_

#include "absl/types/span.h"
#include "core/ops/kernels/adamw.h"

namespace cloze {

// Returns the sum of squares in double, added in a fixed order.
double SumSquares(absl::Span<const float> x);

// One AdamW step over n values; gradients become zero.
void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ADAMW_H_
