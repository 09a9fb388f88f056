#include "tasks/training/pace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "tasks/training/schedule.h"

namespace cloze {

Pace::Pace(const ScheduleSpec& spec, int64_t total_steps, std::function<double()> clock)
    : spec_(spec), total_steps_(total_steps), budget_(60.0 * spec.time_budget_minutes()),
      clock_(clock ? std::move(clock) : std::function<double()>(SteadySeconds)) {}

void Pace::Start(double seconds) {
  before_ = seconds;
  start_ = clock_();
}

double Pace::Seconds() const { return start_ < 0 ? before_ : before_ + clock_() - start_; }

double Pace::SecondsLeft() const { return std::max(budget_ - Seconds(), 0.0); }

double Pace::Done(int64_t step) const {
  return std::min(timed() ? Seconds() / budget_ : double(step) / total_steps_, 1.0);
}

double Pace::Rate(double peak, int64_t step) const {
  return timed() ? TimedLearningRate(spec_, peak, Done(step))
                 : LearningRate(spec_, peak, step, total_steps_);
}

std::string Pace::Describe(int64_t step) const {
  return timed() ? absl::StrCat("step ", step) : absl::StrCat("step ", step, " of ", total_steps_);
}

}  // namespace cloze
