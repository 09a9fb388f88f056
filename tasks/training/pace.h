// How far a run is: by steps or, under a time budget, by the clock.
#ifndef CLOZE_TASKS_TRAINING_PACE_H_
#define CLOZE_TASKS_TRAINING_PACE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "proto/task.pb.h"

namespace cloze {

class Pace {
 public:
  // total_steps: of the run, without meaning under a time budget. clock: seconds, monotonic; empty:
  // the system's.
  Pace(const ScheduleSpec& spec, int64_t total_steps, std::function<double()> clock);

  bool timed() const { return budget_ > 0; }
  // Steps of the run; 0 when the clock decides.
  int64_t total_steps() const { return timed() ? 0 : total_steps_; }

  // Goes on behind `seconds` that earlier processes spent. The clock runs from here on.
  void Start(double seconds);
  // Spent so far, in all processes; 0 before Start.
  double Seconds() const;
  // 0 without a time budget.
  double SecondsLeft() const;

  // Share of the run that is done after `step` steps, 0 to 1.
  double Done(int64_t step) const;
  bool Over(int64_t step) const { return Done(step) >= 1; }
  // Learning rate of step `step`, counted from 0 (schedule.h).
  double Rate(double peak, int64_t step) const;
  // "step 7 of 100", or "step 7" when nobody knows of how many.
  std::string Describe(int64_t step) const;

 private:
  ScheduleSpec spec_;
  int64_t total_steps_;
  double budget_;  // seconds; 0: none
  std::function<double()> clock_;
  double before_ = 0, start_ = -1;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_PACE_H_
