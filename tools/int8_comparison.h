// Comparison of a model's answers with those of the same model in int8.
#ifndef CLOZE_TOOLS_INT8_COMPARISON_H_
#define CLOZE_TOOLS_INT8_COMPARISON_H_

#include <functional>
#include <string>
#include <vector>

#include "tasks/inference/session.h"
#include "tasks/metrics.h"

namespace cloze {

struct ComparisonOptions {
  std::vector<std::string> data, overrides;  // labelled data, see SetData
  std::string texts;                         // or a file of texts
};

// The answers of a model, and their score.
struct AnswersAndScore {
  Metric metric = {};
  double value = 0;                         // of the metric on labelled data; else 1
  std::vector<std::string> answers;         // to each text, without scores
  std::vector<std::vector<float>> vectors;  // of each text, for models that do not classify
};

// Returns how much worse `after` is. Of labelled data: 100 times the difference of the metrics or,
// for metrics that are better when smaller, the increase in percent. Of texts: 100 times the share
// of different answers or, for models that do not classify, 100 times (1 - the mean cosine). Both
// must come from one Answerer.
double PointsLost(const AnswersAndScore& before, const AnswersAndScore& after);
// Returns the share of equal answers; NaN if there are none.
double EqualShare(const AnswersAndScore& before, const AnswersAndScore& after);

// Answers the texts of a comparison with the model of a session.
using Answerer = std::function<absl::StatusOr<AnswersAndScore>(Session&)>;

// Returns the answerer for the model in `session`, which was read from `folder`. Errors of reading
// the data; kMismatch for labelled data if the model has no head.
absl::StatusOr<Answerer> OpenComparison(
    const std::string& folder, const ComparisonOptions& options, Session& session);

}  // namespace cloze

#endif  // CLOZE_TOOLS_INT8_COMPARISON_H_
