// Metrics of a model on held-out examples.
#ifndef CLOZE_TASKS_INFERENCE_EVALUATE_H_
#define CLOZE_TASKS_INFERENCE_EVALUATE_H_

#include <atomic>

#include "tasks/task.h"

namespace cloze {

struct EvaluateOptions {
  int64_t batch_tokens = 8192;
  int64_t max_examples = 0;  // 0: all
  DType compute = DType::kF32;
  const std::atomic<bool>* stop = nullptr;  // set to true: ends with kInterrupted
  DecodeOptions decode = {};
};

// Runs the model without dropout over the examples of the store, in order, and returns the metrics
// of the task. What the task draws (masks) is the same in every evaluation.
absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_EVALUATE_H_
