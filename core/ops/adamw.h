// The AdamW optimizer over flat arrays, and the norm for gradient clipping.
#ifndef CLOZE_CORE_OPS_ADAMW_H_
#define CLOZE_CORE_OPS_ADAMW_H_

#include <vector>

#include "absl/types/span.h"
#include "core/ops/kernels/adamw.h"

namespace cloze {

// Returns the sums of squares of every kSquaresChunk values; the last chunk may be shorter.
inline constexpr int64_t kSquaresChunk = 1 << 16;
std::vector<double> SquareSums(absl::Span<const float> x);

// Returns the sum of squares in double, added in a fixed order: that of SquareSums.
double SumSquares(absl::Span<const float> x);

// Returns the sum over n values of g^2 / max(v, epsilon^2), where g is the scaled gradient and v
// the bias-corrected second moment of the step to come; in a fixed order. StableAdamW (Wortsman et
// al. 2023, algorithm 2) divides a tensor's rate by the root of its mean if that is above 1.
double SumUpdateRatios(const AdamW& a, const float* grad, const float* v, int64_t n);

// One AdamW step over n values; gradients become zero.
void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ADAMW_H_
