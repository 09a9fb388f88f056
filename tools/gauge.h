// Comparison of a model's answers with those of the same model in int8.
#ifndef CLOZE_TOOLS_GAUGE_H_
#define CLOZE_TOOLS_GAUGE_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/inference/session.h"

namespace cloze {

struct GaugeOptions {
  std::vector<std::string> data, overrides;  // labelled data, see SetData
  std::string texts;                         // or a file of texts
};

// What a model answers.
struct Measured {
  std::string metric;
  double value = 0;                         // of labelled data; else 1
  std::vector<std::string> answers;         // to each text, without scores
  std::vector<std::vector<float>> vectors;  // of each text, for models without a head
};

// Returns the loss: 100 times the difference of the metrics, or for metrics that are better when
// smaller the percentage of the increase; without labels 100 times the share of other answers or
// 1 - the mean cosine. Requires that both come from one gauge.
double LossInPoints(const Measured& before, const Measured& after);
// Returns the share of equal answers; NaN if there are none.
double EqualShare(const Measured& before, const Measured& after);

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual absl::StatusOr<Measured> Measure(Session& session) = 0;
};

// `folder` is that of the model in `session`. Errors of reading the data; kMismatch for a model
// without a head and labelled data.
absl::StatusOr<std::unique_ptr<Gauge>> OpenGauge(
    const std::string& folder, const GaugeOptions& options, Session& session);

}  // namespace cloze

#endif  // CLOZE_TOOLS_GAUGE_H_
