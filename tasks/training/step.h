// The first half of an optimizer step: the gradients of a micro-batch.
#ifndef CLOZE_TASKS_TRAINING_STEP_H_
#define CLOZE_TASKS_TRAINING_STEP_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "tasks/build.h"
#include "tasks/task.h"

namespace cloze {

struct PassOptions {
  DType compute = DType::kF32;
  uint64_t seed = 0;       // of dropout
  float scale = 1;         // of the loss; 0: computes no gradients
  bool recompute = false;  // runtime.recompute
  // With a generator, `scale` is that of the generator's loss, and token_scale that of the model's
  // loss over all tokens.
  float token_scale = 1;
  // See Pass. Not with a generator.
  const absl::FunctionRef<void(int layer)>* complete = nullptr;
};

// The type of activations in the evaluations of a run: that of inference, so that a run reports
// what the users of its model get.
inline DType EvaluationType() { return ComputeOf(RuntimeSpec::AUTO, Use::kInference); }

// Forward and backward of one micro-batch. Accumulates the gradients of the trainable parameters.
// Returns the unscaled sum of the losses of the batch's targets; with a generator, its loss plus
// token_scale / scale times that of the model.
double PassOfMicroBatch(
    Model& model, const Task& task, const Batch& batch, const PassOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_STEP_H_
