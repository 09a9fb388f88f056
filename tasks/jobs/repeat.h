// Several runs that differ only in their seed, and the best of them.
#ifndef CLOZE_TASKS_JOBS_REPEAT_H_
#define CLOZE_TASKS_JOBS_REPEAT_H_

#include <string>
#include <vector>

#include "tasks/training/trainer.h"

namespace cloze {

struct RepeatSummary {
  struct Run {
    uint64_t seed;
    double value;  // best value of the metric
    double loss;   // of that model; NaN: unknown
    Trainer::Summary summary;
  };
  std::vector<Run> runs;
  size_t best = 0;  // index of the best run
  // Mean and sample deviation (n - 1) of the values, and the mean loss.
  double mean = 0, deviation = 0, loss = 0;
};

// Trains `repeat` runs one after the other, each in its own folder and resumable like any run. Then
// links the files of the best one into the run directory (or copies them) and writes repeat.json.
// Resumes when called again. Errors as Trainer; kCannotCreate if the directory holds a single run,
// a link in place of a seed's folder, or a model of another seed, which would be forgotten.
absl::StatusOr<RepeatSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_REPEAT_H_
