// Comparison of a model's answers with those of the same model in int8.
#ifndef CLOZE_TOOLS_GAUGE_H_
#define CLOZE_TOOLS_GAUGE_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/inference/session.h"
#include "tasks/metrics.h"

namespace cloze {

struct GaugeOptions {
  std::vector<std::string> data, overrides;  // labelled data, see SetData
  std::string texts;                         // or a file of texts
};

// What a model answers.
struct Measured {
  Metric metric = {};
  double value = 0;                         // of the metric on labelled data; else 1
  std::vector<std::string> answers;         // to each text, without scores
  std::vector<std::vector<float>> vectors;  // of each text, for models that do not classify
};

// Returns how much worse `after` is. Of labelled data: 100 times the difference of the metrics or,
// for metrics that are better when smaller, the increase in percent. Of texts: 100 times the share
// of different answers or, for models that do not classify, 100 times (1 - the mean cosine). Both
// must come from one gauge.
double PointsLost(const Measured& before, const Measured& after);
// Returns the share of equal answers; NaN if there are none.
double EqualShare(const Measured& before, const Measured& after);

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual absl::StatusOr<Measured> Measure(Session& session) = 0;
};

// Opens the gauge for the model in `session`, which was read from `folder`. Errors of reading the
// data; kMismatch for labelled data if the model has no head.
absl::StatusOr<std::unique_ptr<Gauge>> OpenGauge(
    const std::string& folder, const GaugeOptions& options, Session& session);

}  // namespace cloze

#endif  // CLOZE_TOOLS_GAUGE_H_
