// Metrics of a model on held-out examples.
#ifndef CLOZE_TASKS_INFERENCE_EVALUATE_H_
#define CLOZE_TASKS_INFERENCE_EVALUATE_H_

#include <atomic>
#include <optional>

#include "encoder/model.h"
#include "tasks/data/example_store.h"
#include "tasks/masker.h"
#include "tasks/metrics.h"

namespace cloze {

struct EvaluateOptions {
  int64_t batch_tokens = 8192;
  int64_t max_examples = 0;  // 0: all
  DType compute = DType::kF32;
  const Masker* masker = nullptr;           // masked_lm only; every evaluation sees the same masks
  const std::atomic<bool>* stop = nullptr;  // true: ends with kInterrupted
  std::optional<bool> viterbi = std::nullopt;  // taggers: as TagDecoder
};

// Runs the model, without dropout, over the store's examples in order. The metrics are those of the
// model's head (tasks/metrics.h), and `loss`, the head's own (not of numbers), mean of the targets.
// Tagged sentences are put together from their windows and decoded whole; windows of a text count
// as one: the mean of their logits.
absl::StatusOr<MetricResults> Evaluate(
    Model& model, const ExampleStore& store, const EvaluateOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_EVALUATE_H_
