// Measures how fast this machine trains a model, with a few real passes.
#ifndef CLOZE_TASKS_REPORTS_PROBE_H_
#define CLOZE_TASKS_REPORTS_PROBE_H_

#include "tasks/training/setup.h"

namespace cloze {

struct Speed {
  double tokens_per_second = 0;  // of forward and backward passes
  double step_seconds = 0;       // of each optimizer step: norm, AdamW, packing the weights
  double evaluation_tokens_per_second = 0;  // of forward passes
  int64_t pass_tokens = 0;                  // in the largest pass
  double seconds = 0;                       // spent measuring
};

// Trains a model of `setup` with fresh weights on its training data. Passes grow up to
// `most_tokens` as long as the next one is likely to end within `seconds` in total; at least one
// size is timed.
absl::StatusOr<Speed> MeasureSpeed(
    const TaskSpec& spec, const Setup& setup, DType compute, int64_t most_tokens, double seconds);

}  // namespace cloze

#endif  // CLOZE_TASKS_REPORTS_PROBE_H_
