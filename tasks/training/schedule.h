// Length of a run and learning rate over its steps.
#ifndef CLOZE_TASKS_TRAINING_SCHEDULE_H_
#define CLOZE_TASKS_TRAINING_SCHEDULE_H_

#include <cstdint>

#include "proto/task.pb.h"

namespace cloze {

// Optimizer steps of the run: `steps`, or `epochs` passes of steps_per_epoch steps, rounded up. At
// least one.
int64_t TotalSteps(const ScheduleSpec& spec, double steps_per_epoch);

// How often a run evaluates and saves where the spec does not say.
inline constexpr int kTimesARun = 10;

// Steps between evaluations of a run of `total_steps` steps; 0 when the clock decides, and
// total_steps is 0.
int64_t EvaluationInterval(const TaskSpec& spec, double steps_per_epoch, int64_t total_steps);

// Steps between checkpoints; 0 when the clock decides.
int64_t SaveInterval(const TaskSpec& spec, int64_t total_steps);

// Steps of the warm-up: `warmup_steps`, or `warmup_share` of the total, rounded. At most the total.
int64_t WarmupSteps(const ScheduleSpec& spec, int64_t total_steps);

// Learning rate of optimizer step `step`, counted from 0: peak (step + 1) / warmup during the
// warm-up, at whose last step it is the peak; then the shape's way from the peak towards 0, which
// would be reached at total_steps. 0 from there on, but for CONSTANT.
double LearningRate(const ScheduleSpec& spec, double peak, int64_t step, int64_t total_steps);

// The same by the share `done` of the run, 0 to 1: peak done / warmup_share during the warm-up.
double TimedLearningRate(const ScheduleSpec& spec, double peak, double done);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SCHEDULE_H_
