// The head of a model: from hidden states to logits, and the gradient of the loss back to them.
#ifndef CLOZE_ENCODER_MODULES_HEAD_H_
#define CLOZE_ENCODER_MODULES_HEAD_H_

#include "absl/functional/function_ref.h"
#include "core/ops/activation.h"
#include "core/ops/crf.h"
#include "core/ops/loss.h"
#include "encoder/modules/config.h"
#include "encoder/modules/linear.h"
#include "encoder/modules/norm.h"

namespace cloze {

// With a tied output matrix: logits = norm(act(dense(x))) E^T + b. Otherwise: a linear layer, after
// an optional act(dense(x)), with dropout where transformers has it, and optionally a CRF over the
// labels. See head_type.h for the kinds.
class Head {
 public:
  // With HeadKind::kNone the head is empty and must not be used.
  Head(ParamStore* store, const ModelConfig& config, ParamId word_embeddings);

  // hidden [n, hidden] -> logits [n, labels of the adapter in use] f32; without dropout.
  Mat Logits(const Pass& pass, ConstMat hidden) const;

  // Summed loss of `logits` [n, labels]: those of the batch's targets from `first` on. With scale
  // != 0, logits become their gradient times scale.
  using LossFunction =
      absl::FunctionRef<LossSum(Mat logits, int64_t first, float scale, Arena& arena)>;
  // Sum of `loss` over the batch's targets. hidden [padded targets, hidden]. With scale != 0, adds
  // the gradients of all parameters and writes the gradient of hidden, both times scale; dhidden
  // has the shape of hidden, or is empty if not needed. Logits are computed in chunks of rows, so
  // that memory does not grow with rows x vocab.
  LossSum Loss(
      const Pass& pass, ConstMat hidden, float scale, Mat dhidden, LossFunction loss) const;
  // Loss of a head with a CRF, as a LossFunction: `logits` are those of all targets of the batch.
  LossSum CrfLoss(const Pass& pass, Mat logits, float scale) const;

  // Scores of the chain over the labels (a CRF layer); `params` must outlive it. Only when there is
  // one.
  bool has_crf() const { return start_ >= 0; }
  Crf crf(const ParamStore& params) const;

  int64_t labels() const { return labels_; }

 private:
  struct Transformed;
  void AddCrf(ParamStore* store);
  bool drops_input() const {
    return dense_on_ && !type_.tied && config_.family->dropout_before_pooler;
  }
  // `pass` is that of the targets.
  Transformed Transform(const Pass& pass, ConstMat hidden) const;
  void TransformBackward(const Pass& pass, const Transformed& t, Mat dh, Mat dhidden) const;
  DropoutSite Site(const Pass& pass, DropoutPlace place) const;
  // Type of the logits whose loss is taken, and how many rows are made at once of `padded`.
  DType LogitType(const Pass& pass) const { return type_.tied ? pass.compute : DType::kF32; }
  int64_t ChunkOf(const Pass& pass, int64_t padded) const;
  Weight decoder(const Pass& pass) const { return pass.weight(decoder_); }

  ModelConfig config_;
  const HeadType& type_;
  bool dense_on_ = false, norm_on_ = false;
  ActivationKind activation_ = ActivationKind::kTanh;
  Linear dense_;
  Norm norm_;
  ParamId decoder_ = -1, bias_ = -1;  // [labels, hidden], [labels]
  ParamId start_ = -1, between_ = -1,
          end_ = -1;  // of the chain: [labels], [labels, labels], [labels]
  int64_t labels_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_HEAD_H_
