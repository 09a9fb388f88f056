#include "tasks/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tasks/probabilities.h"

namespace cloze {

void PenalizeRepetition(
    absl::Span<const int32_t> tokens, double penalty, absl::Span<float> scores) {
  for (const int32_t token : std::set<int32_t>(tokens.begin(), tokens.end())) {
    float& score = scores[token];
    score = static_cast<float>(score > 0 ? score / penalty : score * penalty);
  }
}

void BanRepeatedSequences(absl::Span<const int32_t> tokens, int64_t n, absl::Span<float> scores) {
  const int64_t before = n - 1, size = std::ssize(tokens);
  if (size < before) return;
  const auto last = tokens.subspan(size - before);
  for (int64_t i = 0; i + before < size; ++i)
    if (tokens.subspan(i, before) == last) scores[tokens[i + before]] = -INFINITY;
}

void LogSoftmax(absl::Span<float> logits) {
  const auto shift = static_cast<float>(LogSumExp(logits));
  for (float& x : logits) x -= shift;
}

void NextProbabilities(const SamplingRule& rule, absl::Span<float> logits) {
  const float max = *std::max_element(logits.begin(), logits.end());
  for (float& x : logits) x = static_cast<float>((x - max) / rule.temperature);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] < logits[b] : a > b;
  };
  const auto clear = [&](auto begin, auto end) {
    for (auto i = begin; i != end; ++i) logits[*i] = -INFINITY;
  };
  if (rule.top_k > 0 && rule.top_k < std::ssize(order)) {
    const auto kept = order.end() - rule.top_k;
    std::nth_element(order.begin(), kept, order.end(), less);
    clear(order.begin(), kept);
    order.erase(order.begin(), kept);
  }
  if (rule.top_p < 1) {
    std::vector<float> p(logits.begin(), logits.end());
    Softmax(p.data(), std::ssize(p));
    std::make_heap(order.begin(), order.end(), less);
    auto end = order.end();
    for (double sum = 0; end != order.begin() && (sum < rule.top_p || end == order.end()); --end) {
      std::pop_heap(order.begin(), end, less);
      sum += p[*(end - 1)];
    }
    clear(order.begin(), end);
  }
  Softmax(logits.data(), std::ssize(logits));
}

int32_t PickToken(absl::Span<const float> probabilities, double uniform) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  int32_t last = 0;
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] <= 0) continue;
    last = static_cast<int32_t>(i);
    sum += probabilities[i];
    if (uniform * total < sum) break;
  }
  return last;
}

}  // namespace cloze
