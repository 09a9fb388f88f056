// Probabilities from logits.
#ifndef CLOZE_TASKS_PROBABILITIES_H_
#define CLOZE_TASKS_PROBABILITIES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

// Replaces x[0..n) by exp(x - max) / sum.
inline void Softmax(float* x, int64_t n) {
  const float max = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] / sum);
}

// Returns log sum exp(factor x) of numbers, computed without overflow. Requires a value.
template <typename Values>
double LogSumExp(const Values& x, double factor = 1) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const auto value : x) sum += std::exp((value - max) * factor);
  return max * factor + std::log(sum);
}

// Returns 1 / (1 + exp(-x)).
inline float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

// Returns the index of the largest value; the first one of equal values. Requires a value.
inline int64_t BestIndex(absl::Span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace cloze

#endif  // CLOZE_TASKS_PROBABILITIES_H_
