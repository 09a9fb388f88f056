// Finds runs whose loss stays at the entropy of the targets.
#ifndef CLOZE_TASKS_TRAINING_PLATEAU_H_
#define CLOZE_TASKS_TRAINING_PLATEAU_H_

#include <cstdint>
#include <string>

#include "proto/task.pb.h"

namespace cloze {

// Returns the share of the run after which its loss should be below the entropy of the targets:
// twice the warm-up, at least a tenth and 20 steps, at most 1; or 2 (never) if the run has fewer
// than 20 steps. `total_steps`: 0 if the run is timed.
double PlateauCheckAt(const ScheduleSpec& schedule, int64_t total_steps);

// Returns a note with remedies if `loss`, the mean of the last steps, is at least 97 % of `chance`
// (Task::ChanceLoss); else "". `labels`: number of labels, or 0. `steps`: as for LearningAdvice.
std::string PlateauNote(
    double loss, double chance, const TaskSpec& spec, size_t labels = 0, int64_t steps = 0);

// Returns what to change in a run of `steps` steps (0: timed, or unknown) that fine-tunes and whose
// model ignores its input: first the number of steps if it is small, then the learning rate.
std::string LearningAdvice(const TaskSpec& spec, int64_t steps);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_PLATEAU_H_
