// Runs over values of some fields of a spec, and the best of them.
#ifndef CLOZE_TASKS_JOBS_SWEEP_H_
#define CLOZE_TASKS_JOBS_SWEEP_H_

#include <string>
#include <vector>

#include "tasks/training/trainer.h"

namespace cloze {

struct SweepSummary {
  struct Run {
    std::string folder;               // in the directory
    std::vector<std::string> values;  // of the fields
    double value = 0;                 // best value of the metric; with `repeat` the mean
    int64_t steps = 0;
    MetricResults results;  // of the best model
    absl::Status status;    // not OK: numbers overflowed, or the run does not fit into memory
  };
  std::vector<std::string> fields;
  Metric metric = {};     // that decides about the best run
  std::vector<Run> runs;  // in the order of the values; the last field varies fastest
  int best = -1;          // index of the best run; -1: none
};

// Trains a run for each combination of values; `sweeps` are "optimizer.learning_rate=1e-4,2e-4".
// Each run has the folder "optimizer.learning_rate=1e-4" of output.directory, and resumes like any
// run: a finished one is not trained again. Then output.directory gets the spec and the model of
// the best run as links, and sweep.json. A run whose numbers overflow, or that does not fit into
// memory, is reported and the others go on; other errors end the sweep.
// kUsage for sweeps that cannot be read, kSpec for values, and for a spec without validation data.
absl::StatusOr<SweepSummary> TrainSweep(const LoadedSpec& loaded,
    const std::vector<std::string>& sweeps, const Trainer::Options& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_SWEEP_H_
