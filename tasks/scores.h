// Probabilities from logits.
#ifndef CLOZE_TASKS_SCORES_H_
#define CLOZE_TASKS_SCORES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Replaces x[0..n) by exp(x - max) / sum.
void Softmax(float* x, int64_t n);

// 1 / (1 + exp(-x)).
float Logistic(float x);

// For each of several labels, true if its probability is at least `threshold`.
std::vector<bool> AtLeast(absl::Span<const float> logits, float threshold);

// Index of the largest value; the first one of equal values. Requires a value.
int64_t BestIndex(absl::Span<const float> values);

}  // namespace cloze

#endif  // CLOZE_TASKS_SCORES_H_
