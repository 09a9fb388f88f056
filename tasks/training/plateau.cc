#include "tasks/training/plateau.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace cloze {

double PlateauCheckAt(const ScheduleSpec& schedule, int64_t total_steps) {
  constexpr double kLeastSteps = 20;  // that the mean loss is of
  const double steps = static_cast<double>(total_steps),
               least = steps > 0 ? kLeastSteps / steps : 0;
  const double warmup =
      schedule.warmup_steps() > 0 ? schedule.warmup_steps() / steps : schedule.warmup_share();
  if (least > 1) return 2;  // never
  return std::min(1.0, std::max({0.1, 2.0 * warmup, least}));
}

std::string PlateauNote(double loss, double chance, bool pretrains) {
  if (!(loss >= 0.97 * chance)) return "";
  return absl::StrFormat(
      "note: the loss is %.4g, and %.4g is reached by knowing only how frequent each %s is: the "
      "model does not use its input yet. If it stays there: %s",
      loss, chance, pretrains ? "token" : "label",
      pretrains
          ? "begin with short pieces (masked_lm.warmup_from_tokens: 16), set "
            "model.encoder.query_key_start: 2 (not MODERN or GPT2), or make more and smaller steps"
          : "lower optimizer.learning_rate by three to ten (raise it if it is below 1e-5), "
            "raise schedule.warmup_share, or train for more steps");
}

}  // namespace cloze
