// Runs over values of some fields of a spec, or over seeds, and the best of them.
#ifndef CLOZE_TASKS_JOBS_SWEEP_H_
#define CLOZE_TASKS_JOBS_SWEEP_H_

#include <string>
#include <vector>

#include "tasks/training/trainer.h"

namespace cloze {

struct SweepSummary {
  struct Run {
    std::string folder;               // in the directory
    std::vector<std::string> values;  // of the fields; empty for a run of an earlier sweep
    double value = kNaN;              // best value of the metric; with `repeat` the mean
    double loss = kNaN;               // of these models, averaged alike; NaN: unknown
    int64_t steps = 0;
    MetricResults results;  // of the best model
    absl::Status status;    // not OK: numbers overflowed, or the run does not fit into memory
  };
  std::vector<std::string> fields;
  Metric metric = {};  // that decides about the best run
  // Other runs of earlier sweeps, by name; then those of this sweep in the order of the values, the
  // last field varying fastest.
  std::vector<Run> runs;
  int best = -1;  // index of the best run; -1: none
  // Sweeps of seeds: mean and sample deviation (n - 1) of the values, and the mean loss.
  double mean = kNaN, deviation = kNaN, loss = kNaN;
};

// Trains a run for each combination of values; `sweeps` are "optimizer.learning_rate=1e-4,2e-4".
// Each run has the folder "optimizer.learning_rate=1e-4" of output.directory, and resumes like any
// run: a finished one is not trained again. Then output.directory gets the spec and the model of
// the best run of this and of earlier sweeps as links, and sweep.json, which lists all. A run whose
// numbers overflow, or that does not fit into memory, is reported and the others go on; other
// errors end the sweep. kUsage for sweeps that cannot be read, kSpec for values, and for a spec
// without validation data. kCannotCreate for a directory that holds other runs, and for a link in
// place of a run's folder; kMismatch for earlier runs that were evaluated on other texts.
absl::StatusOr<SweepSummary> TrainSweep(const LoadedSpec& loaded,
    const std::vector<std::string>& sweeps, const Trainer::Options& options);

// Sweeps over `repeat` seeds, with folders "seed-5" and repeat.json. All runs share the streams,
// the micro-batch and the held-out texts of the first one, and output.directory gets the spec with
// `repeat`. Any error ends the sweep. kCannotCreate also for a model of another seed, which would
// be forgotten.
absl::StatusOr<SweepSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_SWEEP_H_
