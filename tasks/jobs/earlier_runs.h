// The runs that earlier sweeps left in a directory.
#ifndef CLOZE_TASKS_JOBS_EARLIER_RUNS_H_
#define CLOZE_TASKS_JOBS_EARLIER_RUNS_H_

#include <string>
#include <vector>

#include "tasks/jobs/sweep.h"

namespace cloze {

// A run, or the runs of its seeds.
struct EarlierRun {
  SweepSummary::Run run;
  std::vector<MetricResults> parts;  // of each seed

  // Sets value and loss, the means of the parts. run.status is kInternal if a part lacks the
  // metric.
  void Measure(const std::string& metric);
};

// Returns the runs in `directory` that have a model, or an error in its sweep.json, sorted by name.
// Errors of the files, except those that a kill explains.
absl::StatusOr<std::vector<EarlierRun>> FindEarlierRuns(const std::string& directory);

// kMismatch if the run in the folder `run` was evaluated on other texts than the spec `now` says:
// its values cannot be compared.
absl::Status CheckSameEvaluation(const std::string& run, const TaskSpec& now);

// Returns the metric that decides if no run of this sweep ends well: the spec's, else that of the
// directory's sweep.json; without a name if neither is known.
Metric EarlierMetric(const std::string& directory, const TaskSpec& spec);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_EARLIER_RUNS_H_
