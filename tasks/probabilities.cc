#include "tasks/probabilities.h"

#include <algorithm>
#include <cmath>

namespace cloze {
namespace {

template <typename T>
double LogSumExpOf(absl::Span<const T> x, double factor) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const T value : x) sum += std::exp((value - max) * factor);
  return max * factor + std::log(sum);
}

}  // namespace

void Softmax(float* x, int64_t n) {
  const float max = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] / sum);
}

int64_t BestIndex(absl::Span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

double LogSumExp(absl::Span<const float> x, double factor) { return LogSumExpOf(x, factor); }
double LogSumExp(absl::Span<const double> x) { return LogSumExpOf(x, 1); }

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace cloze
