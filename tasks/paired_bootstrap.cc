#include "tasks/paired_bootstrap.h"

#include <algorithm>
#include <vector>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "tasks/metrics.h"

namespace cloze {
namespace {

constexpr int64_t kMaxDraws = 200'000'000, kMaxRounds = 10'000, kMinRounds = 1'000;

// The accuracy and the macro F1 of one classifier on the texts that are added.
class TwoMetrics {
 public:
  explicit TwoMetrics(int32_t labels) : counts_(labels) {}
  void Clear() {
    std::fill(counts_.begin(), counts_.end(), ClassCount());
    texts_ = right_ = 0;
  }
  void Add(int32_t label, int32_t predicted) {
    ++texts_;
    right_ += label == predicted;
    ++counts_[label].labelled;
    ++counts_[predicted].predicted;
    counts_[label].right += label == predicted;
  }
  double Accuracy() const { return double(right_) / texts_; }
  double MacroF1() const {
    double sum = 0, occurring = 0;
    for (const ClassCount& count : counts_) {
      if (!count.occurs()) continue;
      sum += count.F1();
      ++occurring;
    }
    return sum / occurring;
  }

 private:
  std::vector<ClassCount> counts_;
  int64_t texts_ = 0, right_ = 0;
};

MetricDifference Summarize(double value, std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  const auto quantile = [&](double q) {
    return draws[static_cast<size_t>(q * (draws.size() - 1))];
  };
  const auto share = [&](auto end) { return double(end - draws.begin()) / draws.size(); };
  const double not_above = share(std::upper_bound(draws.begin(), draws.end(), 0.0)),
               not_below = 1 - share(std::lower_bound(draws.begin(), draws.end(), 0.0));
  const double p = 2 * std::min(not_above, not_below);
  return {value, quantile(0.025), quantile(0.975), std::clamp(p, 1.0 / draws.size(), 1.0)};
}

// For each round, calls begin(), add(i) for n draws from [0, n) with replacement, and end().
template <typename Begin, typename Add, typename End>
void DrawRounds(int64_t n, Begin begin, Add add, End end) {
  const Philox philox(0, Purpose::kBootstrap);
  const int64_t rounds = std::clamp(kMaxDraws / n, kMinRounds, kMaxRounds);
  for (int64_t round = 0; round < rounds; ++round) {
    begin();
    Philox::Words words = {};
    for (int64_t i = 0; i < n; ++i) {
      if (i % 4 == 0) words = philox(round, static_cast<uint32_t>(i / 4), 0);
      add(Philox::Below(words[i % 4], static_cast<uint32_t>(n)));
    }
    end();
  }
}

}  // namespace

MetricDifference CompareMeans(absl::Span<const double> first, absl::Span<const double> second) {
  const int64_t n = std::ssize(first);
  CLOZE_CHECK(n > 0 && std::ssize(second) == n);
  double all = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) all += second[i] - first[i];
  std::vector<double> means;
  DrawRounds(
      n, [&] { sum = 0; }, [&](int64_t i) { sum += second[i] - first[i]; },
      [&] { means.push_back(sum / n); });
  return Summarize(all / n, std::move(means));
}

PairedComparison ComparePaired(absl::Span<const int32_t> labels, absl::Span<const int32_t> first,
    absl::Span<const int32_t> second) {
  const int64_t n = labels.size();
  CLOZE_CHECK(n > 0 && std::ssize(first) == n && std::ssize(second) == n);
  int32_t most = 0;
  for (const auto& ids : {labels, first, second})
    most = std::max(most, *std::max_element(ids.begin(), ids.end()));
  TwoMetrics a(most + 1), b(most + 1);
  PairedComparison result;
  result.texts = n;
  const auto add = [&](int64_t i) {
    a.Add(labels[i], first[i]);
    b.Add(labels[i], second[i]);
  };
  for (int64_t i = 0; i < n; ++i) {
    add(i);
    result.only_first += first[i] == labels[i] && second[i] != labels[i];
    result.only_second += second[i] == labels[i] && first[i] != labels[i];
  }
  const double accuracy = b.Accuracy() - a.Accuracy(), f1 = b.MacroF1() - a.MacroF1();
  std::vector<double> accuracies, f1s;
  DrawRounds(
      n, [&] { a.Clear(), b.Clear(); }, add,
      [&] {
        accuracies.push_back(b.Accuracy() - a.Accuracy());
        f1s.push_back(b.MacroF1() - a.MacroF1());
      });
  result.accuracy = Summarize(accuracy, std::move(accuracies));
  result.macro_f1 = Summarize(f1, std::move(f1s));
  return result;
}

}  // namespace cloze
