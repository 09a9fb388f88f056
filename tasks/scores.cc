#include "tasks/scores.h"

#include <algorithm>
#include <cmath>

namespace cloze {

void Softmax(float* x, int64_t n) {
  const float max = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] / sum);
}

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

std::vector<bool> AtLeast(absl::Span<const float> logits, float threshold) {
  std::vector<bool> chosen;
  for (const float x : logits) chosen.push_back(Logistic(x) >= threshold);
  return chosen;
}

int64_t BestIndex(absl::Span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace cloze
