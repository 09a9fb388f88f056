// The parts that several runs in one directory share: its lock, and the best model in it.
#ifndef CLOZE_TASKS_JOBS_BEST_RUN_H_
#define CLOZE_TASKS_JOBS_BEST_RUN_H_

#include <string>

#include "tasks/run/run_folder.h"
#include "tasks/training/trainer.h"

namespace cloze {

// Locks a directory for runs in its sub-folders: of a sweep, or of one spec's seeds. kCannotCreate
// if it holds a single run, a model that was not written by a run, or runs of the other kind.
absl::StatusOr<RunLock> LockRuns(const std::string& directory, bool sweep);

// Returns the best value of the run's metric. kInternal if it was never a number.
absl::StatusOr<double> BestValue(const Trainer::Summary& run);

// Replaces the model in `directory` by links to the files of the model in the run `run`, or by
// copies where links cannot be made. The spec stays.
absl::Status PublishRun(const std::string& run, const std::string& directory);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_BEST_RUN_H_
