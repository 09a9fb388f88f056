#include "tasks/training/schedule.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr double kMaxSteps = 1e15;  // fits into 64 bits

// Rate after the warmup. `left`: share of the steps after the warmup that is left. `after`: share
// of the run that follows the warmup.
double AfterWarmup(const ScheduleSpec& spec, double peak, double left, double after) {
  switch (spec.shape()) {
    case ScheduleSpec::LINEAR: return peak * left;
    case ScheduleSpec::COSINE: return peak * 0.5 * (1 - std::cos(std::numbers::pi * left));
    case ScheduleSpec::CONSTANT: return peak;
    case ScheduleSpec::TRAPEZOID: {
      const double decay = std::min<double>(spec.decay_share(), after), run = left * after;
      return run >= decay ? peak : peak * (1 - std::sqrt(1 - run / decay));
    }
  }
  return peak;
}

}  // namespace

int64_t TotalSteps(const ScheduleSpec& spec, double steps_per_epoch) {
  if (spec.steps() > 0) return spec.steps();
  // Slightly less, so that a float such as 0.1 epochs of 10 steps does not round up to 2.
  const double steps = std::ceil(spec.epochs() * steps_per_epoch * (1 - 1e-6));
  return static_cast<int64_t>(std::clamp(steps, 1.0, kMaxSteps));
}

int64_t EvaluationInterval(const TaskSpec& spec, double steps_per_epoch, int64_t total_steps) {
  if (spec.evaluation().every_steps() > 0) return spec.evaluation().every_steps();
  if (!MakeTask(spec)->pretrains()) return std::max<int64_t>(std::ceil(steps_per_epoch), 1);
  return (total_steps + kTimesARun - 1) / kTimesARun;
}

int64_t SaveInterval(const TaskSpec& spec, int64_t total_steps) {
  if (spec.output().checkpoint_every_steps() > 0) return spec.output().checkpoint_every_steps();
  return (total_steps + kTimesARun - 1) / kTimesARun;
}

int64_t WarmupSteps(const ScheduleSpec& spec, int64_t total_steps) {
  const int64_t steps = spec.warmup_steps() > 0
                            ? spec.warmup_steps()
                            : std::llround(double{spec.warmup_share()} * total_steps);
  return std::clamp<int64_t>(steps, 0, total_steps);
}

double LearningRate(const ScheduleSpec& spec, double peak, int64_t step, int64_t total_steps) {
  const int64_t warmup = WarmupSteps(spec, total_steps);
  if (step < warmup) return peak * (step + 1) / warmup;
  const double after = std::max<double>(total_steps - warmup, 1);
  return AfterWarmup(
      spec, peak, std::max<double>(total_steps - step, 0) / after, after / total_steps);
}

double TimedLearningRate(const ScheduleSpec& spec, double peak, double done) {
  const double warmup = spec.warmup_share();
  if (done < warmup) return peak * done / warmup;
  return AfterWarmup(spec, peak, warmup < 1 ? (1 - done) / (1 - warmup) : 1, 1 - warmup);
}

void RunClock::Start(int64_t step) {
  start_ = clock_();
  Advance(step);
  done_before_ = done_;
}

void RunClock::Advance(int64_t step) {
  step_ = step;
  done_before_ = std::exchange(done_, Done(step));
}

double RunClock::Done(int64_t step) const {
  return std::min(timed() ? Seconds() / budget_ : double(step) / total_steps_, 1.0);
}

bool RunClock::Due(int64_t every) const {
  return every > 0 ? step_ % every == 0
                   : std::floor(kTimesARun * done_before_) < std::floor(kTimesARun * done_);
}

double RunClock::Rate(double peak, int64_t step) const {
  return timed() ? TimedLearningRate(spec_, peak, Done(step))
                 : LearningRate(spec_, peak, step, total_steps_);
}

std::string RunClock::Describe(int64_t step) const {
  return absl::StrCat("step ", step, timed() ? "" : absl::StrCat(" of ", total_steps_));
}

}  // namespace cloze
