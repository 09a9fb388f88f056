// Several runs that differ in their seed only, and the best of them.
#ifndef CLOZE_TASKS_REPORTS_REPEAT_H_
#define CLOZE_TASKS_REPORTS_REPEAT_H_

#include <string>
#include <vector>

#include "tasks/training/trainer.h"

namespace cloze {

struct RepeatSummary {
  struct Run {
    uint64_t seed;
    double value;  // best of the metric
    Trainer::Summary summary;
  };
  std::vector<Run> runs;
  size_t best = 0;  // index of the run with the best value
  // Of the runs' values; the deviation is that of a sample (n - 1).
  double mean = 0, deviation = 0;
};

// Trains `repeat` runs one after the other, each in its folder and resumable as any; then links the
// best one's files into the run directory (copies where links cannot be made), each in one step,
// and writes repeat.json. All runs share one token cache. Errors as Trainer's; kCannotCreate when
// the directory holds a single run. Run again, it goes on where it stood.
absl::StatusOr<RepeatSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_REPORTS_REPEAT_H_
