// Computes the memory of a run before it is allocated, and chooses the micro-batch.
#ifndef CLOZE_TASKS_TRAINING_MEMORY_H_
#define CLOZE_TASKS_TRAINING_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "encoder/model.h"
#include "proto/spec.h"
#include "tasks/task.h"

namespace cloze {

// Bytes, by purpose.
struct TrainingNeed {
  int64_t weights = 0;          // f32
  int64_t optimizer = 0;        // gradients and their partial sums, states of Optimizer
  std::string optimizer_parts;  // "gradients, two moments, average"
  int64_t packed = 0;           // copies of the weights in the layouts of matrix products
  int64_t activations = 0;      // saved by the forward pass for the backward pass
  int64_t scratch = 0;    // temporary buffers at the peak of a pass, and of products per thread
  int64_t other = 0;      // program, generated kernels, vocabulary, prefetched batches
  int64_t arena = 0;      // peak of the model's arena: activations and most of the scratch
  bool one_pass = false;  // a step is one pass and trains every weight: Matmul::SharePacked applies

  // Expected peak of the process.
  int64_t total() const { return weights + optimizer + packed + activations + scratch + other; }
};

// Returns an upper bound of the tokens of an optimizer step.
int64_t MaxStepTokens(const TaskSpec& spec, const Task& task);

// Upper bounds for the memory of a spec's runs. They hold for batches whose share of labelled rows
// is at most the average of the data plus a margin.
class MemoryPlan {
 public:
  // The memory is that of each of `ranks` ranks.
  MemoryPlan(const TaskSpec& spec, const ModelConfig& config, DType compute, const DataShape& data,
      int ranks = 1);

  // Returns the memory needed for passes of `micro_tokens` tokens with the current threads.
  TrainingNeed Need(int64_t micro_tokens) const;
  // Returns an upper bound of the number of passes in a step.
  int64_t MaxPasses(int64_t micro_tokens) const;
  int64_t MaxStepTokens() const { return cloze::MaxStepTokens(spec_, *task_); }
  // Returns the largest of these micro-batches that needs at most `bytes`, or 0 if none fits: the
  // smaller of MaxStepTokens() and the field's default; 64 * 2^n; 64 * 3 * 2^n; the longest
  // sequence. None is smaller than that sequence.
  int64_t Largest(int64_t bytes) const;
  const ParamCount& parameters() const { return parameters_; }

 private:
  TaskSpec spec_;
  std::unique_ptr<Task> task_;
  DType compute_;
  DataShape data_;
  int ranks_;
  std::unique_ptr<Model> model_;  // laid out only
  ParamCount parameters_;
};

// Returns the bytes that runtime.memory_limit_mb allows or, if that is 0, that this machine and the
// process's control group can provide.
int64_t MemoryLimit(const TaskSpec& spec);

// Returns the spec's micro_tokens if given, otherwise the largest that fit; sets `note` if memory
// reduced them. kLimit with the field and a breakdown of the memory if they do not fit.
absl::StatusOr<int64_t> ChooseMicroTokens(
    const LoadedSpec& loaded, const MemoryPlan& plan, std::string* note);

// Returns "1234 MB": million bytes, rounded up.
std::string Megabytes(int64_t bytes);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_MEMORY_H_
