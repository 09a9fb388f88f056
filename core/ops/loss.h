// Losses, with gradients in place: logits [rows, labels] become their gradient times
// gradient_scale, unless that is 0.
#ifndef CLOZE_CORE_OPS_LOSS_H_
#define CLOZE_CORE_OPS_LOSS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/arena.h"

namespace cloze {

struct LossSum {
  double loss = 0;      // nats
  int64_t correct = 0;  // rows whose largest logit is the target

  LossSum& operator+=(const LossSum& other) {
    loss += other.loss, correct += other.correct;
    return *this;
  }
};

// Returns the sum over rows of the cross entropy of softmax(logits) against targets [rows].
// Logits f32 or bf16.
LossSum SoftmaxCrossEntropy(Mat logits, const int32_t* targets, float gradient_scale, Arena& arena);

// Writes the cross entropy of each row to losses [rows]; logits f32 or bf16.
void RowLosses(Mat logits, const int32_t* targets, absl::Span<double> losses);

// As PyTorch's CrossEntropyLoss(weight, label_smoothing) before its mean: with weights w and
// smoothing e, a row with target t and log-probabilities l has the loss -(1 - e) w[t] l[t] -
// e / labels * sum of w[c] l[c]. PyTorch's mean divides by the sum of w[t]. Logits f32.
struct LabelWeights {
  absl::Span<const float> weights;  // [labels]; empty: all 1
  float smoothing = 0;
  bool plain() const { return weights.empty() && smoothing == 0; }
};
LossSum WeightedCrossEntropy(Mat logits, const int32_t* targets, const LabelWeights& labels,
    float gradient_scale, Arena& arena);

// Returns the sum over all logits x with targets y [rows, cols] of -y log s(x) - (1 - y) log(1 -
// s(x)), s the logistic function, as PyTorch's BCEWithLogitsLoss(reduction="sum"). `correct` counts
// rows whose logits all have the sign of their target. Logits f32.
LossSum BinaryCrossEntropy(Mat logits, const float* targets, float gradient_scale, Arena& arena);

// Returns the sum of (x - y)^2, as PyTorch's MSELoss(reduction="sum"). `correct` stays 0. Logits
// f32.
LossSum SquaredError(Mat logits, const float* targets, float gradient_scale, Arena& arena);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_LOSS_H_
