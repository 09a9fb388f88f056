// How fast this machine trains a model, by a few real passes.
#ifndef CLOZE_TASKS_REPORTS_PROBE_H_
#define CLOZE_TASKS_REPORTS_PROBE_H_

#include "tasks/training/setup.h"

namespace cloze {

struct Speed {
  double tokens_per_second = 0;  // of forward and backward passes
  double step_seconds = 0;       // once an optimizer step: norm, AdamW, packing of the weights
  double evaluation_tokens_per_second = 0;  // of forward passes
  int64_t pass_tokens = 0;                  // of the largest passes that were timed
  double seconds = 0;                       // that it took
};

// Trains a model of `setup` with fresh weights, on its training data, in passes that grow up to
// `most_tokens` while the next are likely to end within `seconds` in all; at least one size is
// timed. The model is gone afterwards.
absl::StatusOr<Speed> MeasureSpeed(
    const TaskSpec& spec, const Setup& setup, DType compute, int64_t most_tokens, double seconds);

}  // namespace cloze

#endif  // CLOZE_TASKS_REPORTS_PROBE_H_
