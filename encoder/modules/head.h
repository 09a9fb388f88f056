// The head of a model: hidden states to logits, and the gradient of the loss.
#ifndef CLOZE_ENCODER_MODULES_HEAD_H_
#define CLOZE_ENCODER_MODULES_HEAD_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "core/ops/activation.h"
#include "core/ops/crf.h"
#include "core/ops/loss.h"
#include "encoder/modules/layers.h"
#include "encoder/modules/model_shape.h"

namespace cloze {

// The layers of a head, in their order; the output layer of a tied head is the word embeddings.
struct HeadLayout {
  std::optional<Role> dense;                          // null: none
  ActivationKind activation = ActivationKind::kTanh;  // of dense
  bool norm = false;                // dense is the masked-LM head's transform, with kTransformNorm
  Role output = Role::kHeadOutput;  // unless the head is tied
};
// Returns the layers of the head. Requires one.
HeadLayout LayoutOf(const ModelShape& config);

// Tied output matrix: logits = norm(act(dense(x))) E^T + b; a decoder's are x E^T. Otherwise: a
// linear layer after an optional act(dense(x)) or norm(act(dense(x))), with dropout in the places
// of transformers, and an optional CRF over the labels. See HeadType for the kinds.
class Head {
 public:
  // With HeadKind::kNone the head is empty and must not be used.
  Head(ParamStore* store, const ModelShape& config, ModuleKeys keys, ParamId word_embeddings);

  // Returns logits [n, labels of the current adapter] f32 of hidden [n, hidden], without dropout.
  Mat Logits(const Pass& pass, ConstMat hidden) const;

  // Returns the summed loss of logits [n, labels], which belong to the batch's targets from `first`
  // on. If scale != 0, overwrites logits with their gradient times scale.
  using LossFunction =
      absl::FunctionRef<LossSum(Mat logits, int64_t first, float scale, Arena& arena)>;
  // Returns the sum of `loss` over the batch's targets. hidden, dhidden [padded targets, hidden].
  // If scale != 0, adds the gradients of all parameters and overwrites dhidden (unless empty) with
  // the gradient of hidden, both times scale. Computes logits in chunks of rows, so that memory
  // does not grow with rows x vocab.
  LossSum Loss(
      const Pass& pass, ConstMat hidden, float scale, Mat dhidden, LossFunction loss) const;
  // A LossFunction for heads with a CRF; `logits` belong to all targets of the batch.
  LossSum CrfLoss(const Pass& pass, Mat logits, float scale) const;

  // Returns the logits [..., labels] of hidden [..., hidden], named `name` unless that is empty.
  Value Export(const GraphPass& pass, const Value& hidden, const Value& name) const;

  // The scores of the CRF, which point into `params`. Requires has_crf() for crf().
  bool has_crf() const { return start_ >= 0; }
  Crf crf(const ParamStore& params) const;

  int64_t labels() const { return labels_; }

 private:
  struct BeforeOutput;
  void AddCrf(ParamStore* store);
  bool has_dense() const { return layout_.dense.has_value(); }
  bool drops_input() const {
    return has_dense() && type_.labelled && config_.dropout_before_pooler;
  }
  // The layers before the output layer. `pass` is narrowed to the targets.
  BeforeOutput ForwardBeforeOutput(const Pass& pass, ConstMat hidden) const;
  void BackwardBeforeOutput(const Pass& pass, const BeforeOutput& t, Mat dh, Mat dhidden) const;
  DropoutSite Site(const Pass& pass, DropoutKind kind) const;
  // Type of the logits in Loss, and the number of rows per chunk.
  DType LogitType(const Pass& pass) const { return type_.tied ? pass.compute : DType::kF32; }
  int64_t ChunkOf(const Pass& pass, int64_t padded) const;

  ModelShape config_;
  const HeadType& type_;
  HeadLayout layout_;
  int64_t width_;  // of the input of the decoder
  Linear dense_;
  Norm norm_;
  ParamId decoder_ = -1, bias_ = -1;              // [labels, width], [labels]
  ParamId start_ = -1, between_ = -1, end_ = -1;  // CRF: [labels], [labels, labels], [labels]
  int64_t labels_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_HEAD_H_
