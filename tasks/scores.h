// Quality of scores: ranking and calibration; temperatures and thresholds fitted to held-out
// scores.
#ifndef CLOZE_TASKS_SCORES_H_
#define CLOZE_TASKS_SCORES_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Returns the rank of each value, from 1; equal values share the mean of theirs. NaN for all if a
// value is NaN.
std::vector<double> MeanRanks(absl::Span<const double> values);

// Returns the area under the ROC curve: the share of pairs of a positive and another example in
// which the positive has the higher score; equal scores count half. Computed from the rank sum of
// the positives (Mann-Whitney U). NaN if all examples or none are positive, or if a score is NaN.
// Requires equal sizes.
double AreaUnderCurve(absl::Span<const double> scores, const std::vector<bool>& positive);

// Agreement of probabilities with outcomes, in 15 bins of equal width: the last bin is [14/15, 1].
class Calibration {
 public:
  static constexpr int kBins = 15;

  // `probability` (0 to 1) of an outcome, and whether it happened.
  void Add(double probability, bool happened);
  // Returns the expected calibration error (Naeini et al. 2015, Guo et al. 2017): the mean over all
  // outcomes of |share that happened - mean probability| of their bin. NaN without outcomes.
  double Error() const;
  // Returns [{"from", "to", "count", "probability": mean, "share": that happened}, ...] of the bins
  // that are not empty.
  std::string ToJson() const;

 private:
  struct Bin {
    int64_t count = 0, happened = 0;
    double sum = 0;  // of the probabilities
  };
  std::array<Bin, kBins> bins_;
};

// Returns the temperature T in [0.2, 20] that minimizes the summed negative log likelihood of
// softmax(logits / T) (Guo et al. 2017). `logits` [texts, labels]; `targets` [texts], rows with a
// target that is not a label are skipped. The likelihood is concave in 1/T: bisection of its
// derivative, the same bits for any number of threads. 1 without texts.
float FitTemperature(
    absl::Span<const float> logits, int64_t labels, absl::Span<const int32_t> targets);
// Returns the temperature for the logistic function of each logit; `targets` has 1 or 0 for each.
float FitTemperature(absl::Span<const float> logits, absl::Span<const float> targets);

// Returns the threshold for which "probability >= threshold" has the highest F1: halfway between
// two neighbouring probabilities; among equal F1, the one nearest to `otherwise`. Returns
// `otherwise` if no example is positive or a probability is NaN.
float BestThreshold(
    absl::Span<const float> probabilities, const std::vector<bool>& positive, float fallback);

}  // namespace cloze

#endif  // CLOZE_TASKS_SCORES_H_
