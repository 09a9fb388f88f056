// The best model of a run: which one it is, and its files in the run directory.
#ifndef CLOZE_TASKS_TRAINING_BEST_MODEL_H_
#define CLOZE_TASKS_TRAINING_BEST_MODEL_H_

#include <optional>
#include <string>
#include <vector>

#include "tasks/metrics.h"
#include "tasks/training/training_run.h"

namespace cloze {

class BestModel {
 public:
  // `run` must outlive this.
  explicit BestModel(TrainingRun* run) : run_(*run) {}

  // Before the first step, returns an error if evaluation.metric is unknown or differs from the
  // metric by which a resumed run has chosen its best model.
  absl::Status CheckMetric();
  // Makes sure that the run directory holds the best model of a resumed run: a kill may have left
  // part of a later one. Restores it from its checkpoint, or forgets it so that the next evaluation
  // saves a model. Changes the weights.
  absl::Status Restore();
  // True if the spec in the run directory must stay, because the metrics there belong to it.
  bool keeps_spec() const { return keeps_spec_; }

  // Takes the results of the model as it is, and saves it if it is the best; of equal ones, the
  // last is. If the disk fails, keeps it in memory and goes on, unless the run ends here.
  absl::Status Add(const MetricResults& results);
  // Tries again to save the best model that is kept in memory, if there is one.
  absl::Status SaveUnsaved();
  // Does so after 1, 2, 4 ... steps, and ignores errors.
  void RetryUnsaved();
  // Makes sure that the run directory holds the best model; without validation, the last one.
  absl::Status Finish();
  // Returns the results of the best model, else of the last evaluation of this process.
  MetricResults Results() const;

 private:
  // Returns the name of the metric that selects the best model: the spec's, else the first result.
  std::string MetricOf(const MetricResults& results) const;
  // Saves the model of this step, which is the best.
  absl::Status Keep(const MetricResults& results, double value);
  // Saves the model as the one of `step`. Rank 0 needs the exact weights (GatherWeights).
  absl::Status Write(int64_t step, const MetricResults& results);
  // Records that the saved model of `step` is the best.
  void Record(int64_t step, const MetricResults& results, double value);
  // Compares the files in the run directory with their MANIFEST, which must be of `step`.
  absl::Status Verify(int64_t step);

  // The best model if it could not be saved yet.
  struct Unsaved {
    int64_t step;
    double value;
    MetricResults results;
    std::vector<float> weights;  // empty on other ranks than the first
  };

  TrainingRun& run_;
  MetricResults latest_;  // of the last evaluation of this process
  std::optional<Unsaved> unsaved_;
  bool keeps_spec_ = false;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_BEST_MODEL_H_
