// The best evaluation of a run: which metric decides, its best value, and patience.
#ifndef CLOZE_TASKS_TRAINING_BEST_MODEL_H_
#define CLOZE_TASKS_TRAINING_BEST_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "proto/state.pb.h"
#include "proto/task.pb.h"
#include "tasks/metrics.h"

namespace cloze {

class BestModel {
 public:
  explicit BestModel(const EvaluationSpec& spec) : spec_(spec) {}

  // Name of the metric that decides: the spec's, else the first of `results`.
  std::string MetricOf(const MetricResults& results) const;
  // True if `results` are better than the best so far; NaN and infinity never are. kSpec, with the
  // known names, if they lack the metric of the spec.
  absl::StatusOr<bool> IsBetter(const MetricResults& results) const;
  // Records the evaluation after step `step`; `better` as IsBetter returned it.
  void Add(int64_t step, bool better, MetricResults results);

  // True after evaluation.patience evaluations without a better one.
  bool OutOfPatience() const {
    return spec_.patience() > 0 && evaluations_without_best_ >= spec_.patience();
  }
  int64_t evaluations_without_best() const { return evaluations_without_best_; }
  // Name of the deciding metric; empty before the first evaluation.
  const std::string& metric() const { return metric_; }
  // The best results so far and their step; empty and 0 before the first.
  bool found() const { return best_value_.has_value(); }
  const MetricResults& results() const { return best_; }
  int64_t step() const { return best_step_; }

  // Forgets the best results, so that the next finite ones are the best; patience goes on.
  void Forget();

  void ToState(TrainerState* state) const;
  void FromState(const TrainerState& state);

 private:
  EvaluationSpec spec_;
  std::string metric_;
  std::optional<double> best_value_;
  MetricResults best_;
  int64_t best_step_ = 0, evaluations_without_best_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_BEST_MODEL_H_
