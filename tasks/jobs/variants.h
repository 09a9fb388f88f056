// The runs of a sweep, or of `repeat`, before they are trained.
#ifndef CLOZE_TASKS_JOBS_VARIANTS_H_
#define CLOZE_TASKS_JOBS_VARIANTS_H_

#include <string>
#include <vector>

#include "tasks/jobs/sweep.h"

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

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_VARIANTS_H_
