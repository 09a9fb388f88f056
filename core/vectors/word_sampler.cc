#include "core/vectors/word_sampler.h"

#include <cmath>
#include <numeric>

namespace cloze {

WordSampler::WordSampler(const std::vector<int64_t>& counts)
    : share_(counts.size(), 1), other_(counts.size()) {
  const auto n = static_cast<int32_t>(counts.size());
  std::vector<double> weight(n);  // 1 in the mean
  for (int32_t i = 0; i < n; ++i) weight[i] = std::sqrt(static_cast<double>(counts[i]));
  const double mean = std::accumulate(weight.begin(), weight.end(), 0.0) / n;
  std::vector<int32_t> small, large;
  for (int32_t i = 0; i < n; ++i) ((weight[i] /= mean) < 1 ? small : large).push_back(i);
  while (!small.empty() && !large.empty()) {
    const int32_t i = small.back(), j = large.back();
    small.pop_back();
    share_[i] = static_cast<float>(weight[i]);
    other_[i] = j;
    if ((weight[j] -= 1 - weight[i]) >= 1) continue;
    large.pop_back();
    small.push_back(j);
  }
}

}  // namespace cloze
