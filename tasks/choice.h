// Which of two models is better: of the evaluations of a run, of repeated runs, of a sweep.
#ifndef CLOZE_TASKS_CHOICE_H_
#define CLOZE_TASKS_CHOICE_H_

#include <string>

#include "tasks/metrics.h"
#include "tasks/scores.h"

namespace cloze {

// The values of an evaluation by which models are compared.
struct ModelScore {
  double value = kNaN;  // of the metric that decides
  double loss = kNaN;   // on the same data; NaN: unknown
};

// Returns the score of the model with these results; NaN for what they lack.
ModelScore ScoreOf(const MetricResults& results, const std::string& metric);

// Returns 1 if `a` is better than `b`, -1 if it is worse, and 0 if neither is. The metric decides,
// and any number is better than NaN. If the values are equal, the lower loss decides, unless one is
// NaN. If neither is better, a run keeps the later model, and several runs the first one.
int CompareModels(const Metric& metric, const ModelScore& a, const ModelScore& b);

}  // namespace cloze

#endif  // CLOZE_TASKS_CHOICE_H_
