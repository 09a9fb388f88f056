// Length of a run, intervals, the learning rate of each step, and progress by steps or the clock.
#ifndef CLOZE_TASKS_TRAINING_SCHEDULE_H_
#define CLOZE_TASKS_TRAINING_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/system.h"
#include "proto/task.pb.h"

namespace cloze {

// Returns the optimizer steps of the run: `steps`, or `epochs` times steps_per_epoch, rounded up;
// at least 1.
int64_t TotalSteps(const ScheduleSpec& spec, double steps_per_epoch);

// Evaluations and checkpoints of a run by default.
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

// LearningRate by the share `done` of the run, 0 to 1: peak done / warmup_share during the warmup.
double TimedLearningRate(const ScheduleSpec& spec, double peak, double done);

// Progress of a run: by steps or, under schedule.time_budget_minutes, by the clock.
class RunClock {
 public:
  // `total_steps` of the run; ignored under a time budget. `clock`: seconds, monotonic.
  RunClock(
      const ScheduleSpec& spec, int64_t total_steps, std::function<double()> clock = SteadySeconds)
      : spec_(spec), total_steps_(total_steps), budget_(60.0 * spec.time_budget_minutes()),
        clock_(std::move(clock)) {}

  // True under a time budget: the clock ends the run.
  bool timed() const { return budget_ > 0; }
  // Steps of the run; 0 if timed.
  int64_t total_steps() const { return timed() ? 0 : total_steps_; }

  // Continues after `seconds` that earlier processes spent.
  void Resume(double seconds) { before_ = seconds; }
  // Starts the clock, `step` steps into the run.
  void Start(int64_t step);
  // Records that `step` steps are done now.
  void Advance(int64_t step);

  // Seconds spent by all processes of the run.
  double Seconds() const { return start_ < 0 ? before_ : before_ + clock_() - start_; }
  // Seconds of the budget that are left; 0 without one.
  double SecondsLeft() const { return std::max(budget_ - Seconds(), 0.0); }
  // Share of the run, 0 to 1, that is done after `step` steps; if timed, that is done now.
  double Done(int64_t step) const;
  // Done at the last Start or Advance.
  double done() const { return done_; }
  bool over() const { return done_ >= 1; }
  // True if the last Advance completed `every` more steps or, if `every` is 0, a tenth of the run.
  bool Due(int64_t every) const;

  // Learning rate of step `step`, counted from 0.
  double Rate(double peak, int64_t step) const;
  // "step 7 of 100", or "step 7" if timed.
  std::string Describe(int64_t step) const;

 private:
  ScheduleSpec spec_;
  int64_t total_steps_, step_ = 0;
  double budget_;  // seconds; 0: none
  std::function<double()> clock_;
  double before_ = 0, start_ = -1;
  double done_ = 0, done_before_ = 0;  // at the last Advance and the one before
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SCHEDULE_H_
