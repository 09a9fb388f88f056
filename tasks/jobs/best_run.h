// The parts that several runs in one directory share: its lock, and the best model in it.
#ifndef CLOZE_TASKS_JOBS_BEST_RUN_H_
#define CLOZE_TASKS_JOBS_BEST_RUN_H_

#include <string>

#include "absl/types/span.h"
#include "tasks/metrics.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/trainer.h"

namespace cloze {

// Locks a directory for runs in its sub-folders: of a sweep, or of one spec's seeds. kCannotCreate
// if it holds a single run, a model that was not written by a run, or runs of the other kind.
absl::StatusOr<RunLock> LockRuns(const std::string& directory, bool sweep);

// True if `path` is a symbolic link.
bool IsLink(const std::string& path);
// kCannotCreate if the folder of a run is a link: a sweep writes only into its own directory.
absl::Status CheckNoLink(const std::string& path);

// Returns the score of the run's best model. kInternal if its metric was never a number.
absl::StatusOr<ModelScore> BestScore(const Trainer::Summary& run);

// Returns the index of the best run, the first of equal ones. Those that failed have no value. -1
// if none has one.
int BestOfRuns(const Metric& metric, absl::Span<const ModelScore> runs);

// Replaces the model in `directory` by links to the files of the model in the run `run`, or by
// copies where links cannot be made. The spec stays.
absl::Status PublishRun(const std::string& run, const std::string& directory);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_BEST_RUN_H_
