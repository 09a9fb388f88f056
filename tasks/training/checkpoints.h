// The checkpoints of a run.
#ifndef CLOZE_TASKS_TRAINING_CHECKPOINTS_H_
#define CLOZE_TASKS_TRAINING_CHECKPOINTS_H_

#include <string>

#include "tasks/training/best_model.h"
#include "tasks/training/training_run.h"

namespace cloze {

class Checkpoints {
 public:
  // The arguments must outlive this.
  Checkpoints(TrainingRun* run, BestModel* best) : run_(*run), best_(*best) {}

  // Sets model, optimizer and clock as in checkpoint `path` of this run, whose state `run` has.
  absl::Status Resume(const std::string& path);
  // Saves a checkpoint unless this step has one. First saves the best model: a run that resumes at
  // a checkpoint finds it. Only reports the first failures in a row, unless `last`.
  absl::Status Save(bool last);
  // Returns `error` after saving what can be saved.
  absl::Status SaveBefore(const absl::Status& error);

 private:
  static constexpr int kMaxFailures = 3;  // in a row, before the run ends

  // Writes the checkpoint on rank 0, to which the others send their states.
  absl::Status Write();
  absl::Status WriteFiles(const std::string& folder);

  TrainingRun& run_;
  BestModel& best_;
  int failures_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_CHECKPOINTS_H_
