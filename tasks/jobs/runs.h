// Runs in the folders of one directory, before they are trained (variants.cc) and afterwards.
#ifndef CLOZE_TASKS_JOBS_RUNS_H_
#define CLOZE_TASKS_JOBS_RUNS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tasks/jobs/sweep.h"
#include "tasks/run/run_folder.h"

namespace cloze {

// A run and its verified spec.
struct Variant {
  SweepSummary::Run run;  // its folder and values
  LoadedSpec loaded;
};

bool IsOneOf(const std::vector<Variant>& variants, absl::string_view folder);

// Returns a run for each combination of values; `sweeps` as for TrainSweep. Appends the fields to
// *names. kUsage for sweeps that cannot be read, kSpec for values.
absl::StatusOr<std::vector<Variant>> SweepVariants(const LoadedSpec& loaded,
    const std::vector<std::string>& sweeps, std::vector<std::string>* names);

// Returns a run for each seed of `repeat`.
absl::StatusOr<std::vector<Variant>> SeedVariants(const LoadedSpec& loaded);

// Locks a directory for runs in its sub-folders: of a sweep, or of one spec's seeds. kCannotCreate
// if it holds a single run, a model that was not written by a run, or runs of the other kind.
absl::StatusOr<RunLock> LockRuns(const std::string& directory, bool sweep);

// kCannotCreate if the folder of a run is a link: a sweep writes only into its own directory.
absl::Status CheckNoLink(const std::string& path);

// Returns the score of the run's best model. kInternal if its metric was never a number.
absl::StatusOr<ModelScore> BestScore(const Trainer::Summary& run);

// Returns the index of the best run, the first of equal ones; -1 if none has a value.
int BestOfRuns(const Metric& metric, absl::Span<const ModelScore> runs);

// Replaces the model in `directory`, not its spec, by links to the files of `run`, else copies.
absl::Status PublishRun(const std::string& run, const std::string& directory);

// A run, or the runs of its seeds.
struct EarlierRun {
  SweepSummary::Run run;
  std::vector<MetricResults> parts;  // of each seed

  // Sets value and loss to the means of the parts; run.status is kInternal if one lacks the metric.
  void Measure(const std::string& metric);
};

// Returns the runs in `directory` that have a model, or an error in its sweep.json, sorted by name.
// Errors of the files, except those that a kill explains.
absl::StatusOr<std::vector<EarlierRun>> FindEarlierRuns(const std::string& directory);

// kMismatch if the run in the folder `run` was evaluated on other texts than those of `now`.
absl::Status CheckSameEvaluation(const std::string& run, const TaskSpec& now);

// Returns the metric that decides if no run of this sweep ends well: the spec's, else that of the
// directory's sweep.json; without a name if neither is known.
Metric EarlierMetric(const std::string& directory, const TaskSpec& spec);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_RUNS_H_
