#include "tasks/training/step.h"

#include "tasks/replaced_tokens.h"

namespace cloze {

double PassOfMicroBatch(
    Model& model, const Task& task, const Batch& batch, const PassOptions& options) {
  model.arena().Reset();
  const auto pass_over = [&](const Batch& input) {
    Pass pass = model.NewPass(input, options.compute, true, options.seed);
    pass.recompute = options.recompute;
    return pass;
  };
  const auto train = [&](const Pass& pass, float scale) {
    const auto loss = [&](Mat logits, int64_t first, float gradient, Arena& arena) {
      return task.Loss(model.head(), pass, logits, first, gradient, arena);
    };
    return TrainingPass(model.backbone(), model.head(), pass, scale, loss).loss;
  };
  if (model.generator() == nullptr) {
    Pass pass = pass_over(batch);
    pass.complete = options.complete;
    return train(pass, options.scale);
  }
  Batch replaced;
  const double loss =
      ReplaceTokens(*model.generator(), pass_over(batch), options.scale, &replaced).loss;
  if (options.scale == 0) return loss;  // the step has no targets
  return loss +
         train(pass_over(replaced), options.token_scale) * options.token_scale / options.scale;
}

}  // namespace cloze
