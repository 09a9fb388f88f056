// Length of a run, intervals, and the learning rate of each step.
#ifndef CLOZE_TASKS_TRAINING_SCHEDULE_H_
#define CLOZE_TASKS_TRAINING_SCHEDULE_H_

#include <cstdint>

#include "proto/task.pb.h"

namespace cloze {

// Returns the optimizer steps of the run: `steps`, or `epochs` times steps_per_epoch, rounded up;
// at least 1.
int64_t TotalSteps(const ScheduleSpec& spec, double steps_per_epoch);

// How often a run evaluates and saves by default.
inline constexpr int kTimesARun = 10;

// Returns the steps between evaluations of a run of `total_steps` (0: timed); 0 if the clock
// decides.
int64_t EvaluationInterval(const TaskSpec& spec, double steps_per_epoch, int64_t total_steps);

// Returns the steps between checkpoints; 0 if the clock decides.
int64_t SaveInterval(const TaskSpec& spec, int64_t total_steps);

// Returns the steps of the warmup: `warmup_steps`, or `warmup_share` of the total, rounded; at most
// the total.
int64_t WarmupSteps(const ScheduleSpec& spec, int64_t total_steps);

// Returns the learning rate of optimizer step `step`, counted from 0: peak (step + 1) / warmup
// during the warmup; then the shape falls from the peak to 0 at total_steps (CONSTANT stays at the
// peak).
double LearningRate(const ScheduleSpec& spec, double peak, int64_t step, int64_t total_steps);

// The same for a share `done` of the run, 0 to 1: peak done / warmup_share during the warmup.
double TimedLearningRate(const ScheduleSpec& spec, double peak, double done);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SCHEDULE_H_
