// Probabilities from logits.
#ifndef CLOZE_TASKS_PROBABILITIES_H_
#define CLOZE_TASKS_PROBABILITIES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

// Replaces x[0..n) by exp(x - max) / sum.
void Softmax(float* x, int64_t n);

// Returns log sum exp(factor x) of a row, computed without overflow. Requires a value.
double LogSumExp(absl::Span<const float> x, double factor = 1);
double LogSumExp(absl::Span<const double> x);

// Returns 1 / (1 + exp(-x)).
float Logistic(float x);

// Returns the index of the largest value; the first one of equal values. Requires a value.
int64_t BestIndex(absl::Span<const float> values);

}  // namespace cloze

#endif  // CLOZE_TASKS_PROBABILITIES_H_
