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

// Returns the sum of squares in double: SquareSums(x), added in order.
double SumSquares(absl::Span<const float> x);

// Returns the sum over n values of g^2 / max(v, epsilon^2), in a fixed order, where g is the scaled
// gradient and v the bias-corrected second moment after the next AdamWStep. StableAdamW (Wortsman
// et al. 2023, algorithm 2) divides the rate of a tensor by the root of the mean of these ratios if
// that root is above 1.
double SumUpdateRatios(const AdamW& a, const float* grad, const float* v, int64_t n);

// One AdamW step over n values; gradients become zero.
void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ADAMW_H_
