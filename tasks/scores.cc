#include "tasks/scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/json.h"
#include "core/base/status.h"

namespace cloze {
namespace {

constexpr double kMinTemperature = 0.2, kMaxTemperature = 20;

// Returns the temperature at which `slope`, an increasing function of 1/T, is 0.
float Bisect(const std::function<double(double)>& slope) {
  double low = -std::log(kMaxTemperature), high = -std::log(kMinTemperature);  // of log 1/T
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (slope(std::exp(middle)) < 0 ? low : high) = middle;
  }
  return static_cast<float>(std::exp(-(low + high) / 2));
}

template <typename T>
bool AnyNan(absl::Span<const T> values) {
  return std::any_of(values.begin(), values.end(), [](T x) { return std::isnan(x); });
}

}  // namespace

std::vector<double> MeanRanks(absl::Span<const double> values) {
  if (AnyNan(values)) return std::vector<double>(values.size(), kNaN);
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin; end < order.size() && values[order[end]] == values[order[begin]];) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = (begin + 1 + end) / 2.0;
  }
  return ranks;
}

double AreaUnderCurve(absl::Span<const double> scores, const std::vector<bool>& positive) {
  CLOZE_CHECK(scores.size() == positive.size());
  const double positives = std::count(positive.begin(), positive.end(), true),
               others = scores.size() - positives;
  if (positives == 0 || others == 0) return kNaN;
  const std::vector<double> ranks = MeanRanks(scores);
  double sum = 0;
  for (size_t i = 0; i < ranks.size(); ++i) sum += positive[i] ? ranks[i] : 0;
  return (sum - positives * (positives + 1) / 2) / (positives * others);
}

void Calibration::Add(double probability, bool happened) {
  // NaN belongs to the first bin, whose sum it makes NaN.
  const int index = std::isnan(probability) ? 0 : static_cast<int>(probability * kBins);
  Bin& bin = bins_[std::clamp(index, 0, kBins - 1)];
  ++bin.count;
  bin.happened += happened;
  bin.sum += probability;
}

double Calibration::Error() const {
  double error = 0, count = 0;
  for (const Bin& bin : bins_) {
    error += std::fabs(bin.happened - bin.sum);
    count += bin.count;
  }
  return count > 0 ? error / count : kNaN;
}

std::string Calibration::ToJson() const {
  OrderedJson rows = OrderedJson::array();
  for (int i = 0; i < kBins; ++i) {
    const Bin& bin = bins_[i];
    if (bin.count == 0) continue;
    const double n = bin.count;
    rows.push_back({{"from", double(i) / kBins}, {"to", (i + 1.0) / kBins}, {"count", bin.count},
        {"probability", bin.sum / n}, {"share", bin.happened / n}});
  }
  return rows.dump();
}

float FitTemperature(
    absl::Span<const float> logits, int64_t labels, absl::Span<const int32_t> targets) {
  const auto known = [&](int32_t target) { return target >= 0 && target < labels; };
  if (std::none_of(targets.begin(), targets.end(), known)) return 1;
  // The sum over texts of E[logit] - logit of the target.
  return Bisect([&](double inverse) {
    double slope = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!known(targets[i])) continue;
      const float* row = logits.data() + i * labels;
      const double max = *std::max_element(row, row + labels);
      double sum = 0, mean = 0;
      for (int64_t l = 0; l < labels; ++l) {
        const double e = std::exp(inverse * (row[l] - max));
        sum += e;
        mean += e * row[l];
      }
      slope += mean / sum - row[targets[i]];
    }
    return slope;
  });
}

float FitTemperature(absl::Span<const float> logits, absl::Span<const float> targets) {
  if (logits.empty()) return 1;
  return Bisect([&](double inverse) {
    double slope = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      slope += (1 / (1 + std::exp(-inverse * logits[i])) - targets[i]) * logits[i];
    return slope;
  });
}

float BestThreshold(
    absl::Span<const float> probabilities, const std::vector<bool>& positive, float fallback) {
  if (AnyNan(probabilities)) return fallback;
  std::vector<std::pair<float, bool>> sorted;
  for (size_t i = 0; i < positive.size(); ++i) sorted.emplace_back(probabilities[i], positive[i]);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double positives = std::count(positive.begin(), positive.end(), true);
  float threshold = fallback;
  double best = 0, right = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    right += sorted[i].second;
    const float here = sorted[i].first, next = i + 1 < sorted.size() ? sorted[i + 1].first : 0;
    if (here == next) continue;
    const double f1 = 2 * right / (positives + i + 1);
    const float middle = here - (here - next) / 2;
    const bool nearer = std::fabs(middle - fallback) < std::fabs(threshold - fallback);
    if (f1 > best || (f1 == best && best > 0 && nearer)) best = f1, threshold = middle;
  }
  return threshold;
}

}  // namespace cloze
