// The losses that the tests of heads use.
#ifndef CLOZE_TESTS_ENCODER_MODULES_LOSS_H_
#define CLOZE_TESTS_ENCODER_MODULES_LOSS_H_

#include "encoder/modules/head.h"

namespace cloze {

inline constexpr char kMultiLabel[] = "multi_label_classification", kRegression[] = "regression";

// head.Loss with the loss of the config's problem_type, or of the CRF.
inline LossSum LossOf(const Head& head, const ModelConfig& config, const Pass& pass,
    ConstMat hidden, float scale, Mat dhidden, const LabelWeights& weights = {}) {
  const auto loss = [&](Mat logits, int64_t first, float gradient, Arena& arena) -> LossSum {
    if (head.has_crf()) return head.CrfLoss(pass, logits, gradient);
    const int32_t* targets = pass.batch.targets.data() + first;
    const float* values = pass.batch.values.data() + first * head.labels();
    if (config.problem_type == kMultiLabel)
      return BinaryCrossEntropy(logits, values, gradient, arena);
    if (config.problem_type == kRegression) return SquaredError(logits, values, gradient, arena);
    if (weights.plain()) return SoftmaxCrossEntropy(logits, targets, gradient, arena);
    return WeightedCrossEntropy(logits, targets, weights, gradient, arena);
  };
  return head.Loss(pass, hidden, scale, dhidden, loss);
}

}  // namespace cloze

#endif  // CLOZE_TESTS_ENCODER_MODULES_LOSS_H_
