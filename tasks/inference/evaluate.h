// Metrics of a model on the examples of a store.
#ifndef CLOZE_TASKS_INFERENCE_EVALUATE_H_
#define CLOZE_TASKS_INFERENCE_EVALUATE_H_

#include <atomic>
#include <functional>

#include "core/comm/ranks.h"
#include "encoder/model.h"
#include "tasks/task.h"

namespace cloze {

// Settings of Evaluate.
struct EvaluateOptions {
  int64_t batch_tokens = 8192;
  int64_t max_examples = 0;  // 0: all
  DType compute = DType::kF32;
  const std::atomic<bool>* stop = nullptr;  // set to true: ends with kInterrupted
  DecodeOptions decode = {};
  std::function<void(const TextLogits&)> on_text = {};  // Evaluation::on_text
  bool needs_finite = false;  // kData if the model's results are not finite
  Ranks* ranks = &OneRank();  // each computes some batches and gets the results of all
};

// Runs the model without dropout over the examples of the store, in order, and returns the metrics
// of the task. Random choices of the task, such as masks, are the same in every evaluation.
absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_EVALUATE_H_
