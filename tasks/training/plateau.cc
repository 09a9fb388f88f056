#include "tasks/training/plateau.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/task.h"

namespace cloze {

double PlateauCheckAt(const ScheduleSpec& schedule, int64_t total_steps) {
  constexpr double kMinSteps = 20;  // that the mean loss is of
  const double steps = static_cast<double>(total_steps), least = steps > 0 ? kMinSteps / steps : 0;
  const double warmup =
      schedule.warmup_steps() > 0 ? schedule.warmup_steps() / steps : schedule.warmup_share();
  if (least > 1) return 2;  // never
  return std::min(1.0, std::max({0.1, 2.0 * warmup, least}));
}

std::string LearningAdvice(const TaskSpec& spec, int64_t steps) {
  constexpr int64_t kFewSteps = 600;
  const std::string rate =
      "lower optimizer.learning_rate by a factor of 3 to 10 (raise it if it is below 1e-5), or "
      "raise schedule.warmup_share";
  if (steps == 0 || steps >= kFewSteps) return absl::StrCat(rate, ", or train for more steps");
  const ScheduleSpec& schedule = spec.schedule();
  const double factor = std::ceil(1000.0 / static_cast<double>(steps));
  const std::string longer =
      schedule.steps() > 0 ? "schedule.steps: 1000"
                           : absl::StrFormat("schedule.epochs: %.0f", schedule.epochs() * factor);
  return absl::StrCat("the run has only ", steps, " steps: train for more, ", longer,
      "; if that does not help, ", rate);
}

std::string PlateauNote(
    double loss, double chance, const TaskSpec& spec, size_t labels, int64_t steps) {
  if (!(loss >= 0.97 * chance)) return "";
  const bool pretrains = MakeTask(spec)->pretrains(), masks = spec.has_masked_lm();
  // A new head gives all labels about the same probability.
  const double start = std::log(static_cast<double>(std::max<size_t>(labels, 2)));
  // Numbers far from 0 have a large loss at the beginning.
  const bool numbers =
      spec.sequence_classification().kind() == SequenceClassificationSpec::REGRESSION;
  return absl::StrFormat(
      "note: the loss is %.4g; a model that ignores its input reaches %.4g. If the loss stays "
      "there: %s",
      loss, chance,
      loss > std::max(5 * chance, 1.5 * start) && !numbers ? "lower optimizer.learning_rate"
      : loss > 1.15 * chance
          ? "raise optimizer.learning_rate (lower it if the loss rises), or train "
            "for more steps"
      : !pretrains ? LearningAdvice(spec, steps)
      : masks      ? "begin with short pieces (masked_lm.warmup_from_tokens: 16), set "
                     "model.encoder.query_key_start: 2 (not MODERN), or take more and smaller steps"
                   : "take more and smaller steps");
}

}  // namespace cloze
