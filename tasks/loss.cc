#include "tasks/loss.h"

namespace cloze {

LossSum Loss(const Model& model, const Pass& pass, ConstMat hidden, float scale, Mat dhidden,
    const LabelWeights& weights) {
  const Head& head = model.head();
  const auto loss = [&](Mat logits, int64_t first, float gradient, Arena& arena) -> LossSum {
    if (head.has_chain()) return head.CrfLoss(pass, logits, gradient);
    const int32_t* targets = pass.batch.targets.data() + first;
    const float* values =
        pass.batch.values.empty() ? nullptr : pass.batch.values.data() + first * head.labels();
    switch (model.config().problem) {
      case Problem::kSingleLabel:
        if (weights.plain()) return SoftmaxCrossEntropy(logits, targets, gradient, arena);
        return WeightedCrossEntropy(logits, targets, weights, gradient, arena);
      case Problem::kMultiLabel: return BinaryCrossEntropy(logits, values, gradient, arena);
      case Problem::kRegression: return SquaredError(logits, values, gradient, arena);
    }
    CLOZE_CHECK(false);
  };
  return head.Loss(pass, hidden, scale, dhidden, loss);
}

double LossWeight(const ModelConfig& config, const Batch& batch, const LabelWeights& weights) {
  if (config.problem != Problem::kSingleLabel) return static_cast<double>(batch.values.size());
  if (weights.weights.empty()) return static_cast<double>(batch.targets.size());
  double sum = 0;
  for (const int32_t target : batch.targets) sum += weights.weights[target];
  return sum;
}

}  // namespace cloze
