// Progress of a run: by steps or, under a time budget, by the clock.
#ifndef CLOZE_TASKS_TRAINING_PACE_H_
#define CLOZE_TASKS_TRAINING_PACE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "proto/task.pb.h"

namespace cloze {

class Pace {
 public:
  // `total_steps` of the run; ignored under a time budget. `clock`: seconds, monotonic; empty: the
  // system's.
  Pace(const ScheduleSpec& spec, int64_t total_steps, std::function<double()> clock);

  // True under schedule.time_budget_minutes: the clock ends the run.
  bool timed() const { return budget_ > 0; }
  // Steps of the run; 0 if timed.
  int64_t total_steps() const { return timed() ? 0 : total_steps_; }

  // Continues after `seconds` that earlier processes spent.
  void Resume(double seconds) { before_ = seconds; }
  // Starts the clock, `step` steps into the run.
  void Start(int64_t step);
  // Says that `step` steps are done now.
  void Advance(int64_t step);

  // Seconds spent by all processes of the run.
  double Seconds() const;
  // Seconds of the budget that are left; 0 without one.
  double SecondsLeft() const;
  // Share of the run, 0 to 1, that is done after `step` steps; if timed, that is done now.
  double Done(int64_t step) const;
  // Done at the last Start or Advance.
  double done() const { return done_; }
  bool over() const { return done_ >= 1; }
  // True if the last Advance completed `every` more steps or, if `every` is 0, a tenth of the run.
  bool Due(int64_t every) const;

  // Learning rate of step `step`, counted from 0 (schedule.h).
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

#endif  // CLOZE_TASKS_TRAINING_PACE_H_
