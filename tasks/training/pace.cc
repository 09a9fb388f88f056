#include "tasks/training/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/system.h"
#include "tasks/training/schedule.h"

namespace cloze {

Pace::Pace(const ScheduleSpec& spec, int64_t total_steps, std::function<double()> clock)
    : spec_(spec), total_steps_(total_steps), budget_(60.0 * spec.time_budget_minutes()),
      clock_(clock ? std::move(clock) : std::function<double()>(SteadySeconds)) {}

void Pace::Start(int64_t step) {
  start_ = clock_();
  Advance(step);
  done_before_ = done_;
}

void Pace::Advance(int64_t step) {
  step_ = step;
  done_before_ = std::exchange(done_, Done(step));
}

double Pace::Seconds() const { return start_ < 0 ? before_ : before_ + clock_() - start_; }

double Pace::SecondsLeft() const { return std::max(budget_ - Seconds(), 0.0); }

double Pace::Done(int64_t step) const {
  return std::min(timed() ? Seconds() / budget_ : double(step) / total_steps_, 1.0);
}

bool Pace::Due(int64_t every) const {
  return every > 0 ? step_ % every == 0
                   : std::floor(kTimesARun * done_before_) < std::floor(kTimesARun * done_);
}

double Pace::Rate(double peak, int64_t step) const {
  return timed() ? TimedLearningRate(spec_, peak, Done(step))
                 : LearningRate(spec_, peak, step, total_steps_);
}

std::string Pace::Describe(int64_t step) const {
  return timed() ? absl::StrCat("step ", step) : absl::StrCat("step ", step, " of ", total_steps_);
}

}  // namespace cloze
