// Memory that a run needs, known before anything is allocated, and the micro-batch that fits.
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

// Bytes, by what they are for.
struct TrainingNeed {
  int64_t weights = 0;  // f32
  int64_t optimizer =
      0;  // gradients, two moments and, if asked for, the average of the weights, of what learns
  int64_t packed = 0;       // copies of the weights as matrix products like them
  int64_t activations = 0;  // that the forward pass keeps for the backward pass
  int64_t scratch =
      0;  // what the passes need on top at the fullest moment, and the threads for products
  int64_t other = 0;  // the program and the kernels that it writes, the vocabulary, batches at hand
  int64_t arena = 0;  // most of the model's arena: activations, and most of the scratch
  bool one_pass = false;  // a step, in which every weight changes: copies of weights of one shape
                          // share their place

  int64_t total() const {
    return weights + optimizer + packed + activations + scratch + other;
  }  // expected peak of the process
};

// Needs of a spec's runs. Upper bounds for batches of which no more rows are labelled than the data
// have on average, with some room.
class MemoryPlan {
 public:
  MemoryPlan(const TaskSpec& spec, const ModelConfig& config, DType compute, const DataShape& data);

  // With that many tokens in a pass, and the present number of threads.
  TrainingNeed Need(int64_t micro_tokens) const;
  // Tokens of the largest pass that the spec can ask for: more change nothing.
  int64_t MostTokens() const;
  // Largest micro-batch of at most MostTokens() and the field's default that needs at most `bytes`,
  // and at least one longest sequence: that most, or 64 times a power of two or its half more. 0
  // when none fits.
  int64_t Largest(int64_t bytes) const;
  // Numbers in the model, and how many learn.
  int64_t parameters() const { return parameters_; }
  int64_t trained() const { return trained_; }

 private:
  int64_t Targets(int64_t rows, bool training) const;
  // Dry runs of what the trainer does.
  void RunTraining(const Batch& batch, TrainingNeed* need) const;
  void RunEvaluation(const Batch& batch) const;

  TaskSpec spec_;
  std::unique_ptr<Task> task_;
  DType compute_;
  DataShape data_;
  std::unique_ptr<Model> model_;  // laid out only
  int64_t parameters_ = 0, trained_ = 0;
};

// What runtime.memory_limit_mb allows or, when that is 0, what this machine and this process's
// control group can give; bytes.
int64_t MemoryLimit(const TaskSpec& spec);

// The spec's micro_tokens when it has some that fit, else the largest that fit; `note` says so when
// memory made them fewer. kLimit, at the place of the field and with the need in parts, when
// nothing fits or what the spec asks for does not.
absl::StatusOr<int64_t> ChooseMicroTokens(
    const LoadedSpec& loaded, const MemoryPlan& plan, std::string* note);

// "1234 MB": million bytes, rounded up.
std::string Megabytes(int64_t bytes);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_MEMORY_H_
