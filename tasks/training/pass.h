// Forward and backward of one micro-batch.
#ifndef CLOZE_TASKS_TRAINING_PASS_H_
#define CLOZE_TASKS_TRAINING_PASS_H_

#include "tasks/task.h"

namespace cloze {

struct PassOptions {
  DType compute = DType::kF32;
  uint64_t seed = 0;       // of dropout
  float scale = 1;         // of the loss; 0: computes no gradients
  bool recompute = false;  // runtime.recompute
};

// Accumulates the gradients of the trainable parameters. Returns the unscaled sum of the losses of
// the batch's targets.
inline double TrainingPass(
    Model& model, const Task& task, const Batch& batch, const PassOptions& options) {
  model.arena().Reset();
  Pass pass = model.NewPass(batch, options.compute, true, options.seed);
  pass.recompute = options.recompute;
  const Encoder::Saved saved = model.encoder().Forward(pass);
  const bool trained = model.encoder().requires_grad(pass);
  Mat dy = trained ? pass.New(saved.y.rows, saved.y.cols) : Mat();
  const double loss = HeadLoss(task, model.head(), pass, saved.y, options.scale, dy).loss;
  if (options.scale != 0 && trained) model.encoder().Backward(pass, saved, dy);
  return loss;
}

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_PASS_H_
