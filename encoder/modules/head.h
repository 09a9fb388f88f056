// What turns hidden states into logits, for every task: gather rows, a small transform, a linear
// layer, softmax cross entropy.
#ifndef CLOZE_ENCODER_MODULES_HEAD_H_
#define CLOZE_ENCODER_MODULES_HEAD_H_

#include <string>
#include <vector>

#include "core/ops/chain.h"
#include "encoder/modules/config.h"
#include "encoder/modules/linear.h"
#include "encoder/modules/norm.h"

namespace cloze {

// masked_lm: norm(act(dense)), decoder tied to the word embeddings; sequence_classification:
// optional tanh(dense) on <class>; token_tagging: nothing before the classifier, and optionally a
// linear chain over its labels behind it. Dropout where Hugging Face has it.
class Head {
 public:
  // config.head says which; kNone makes an empty head that must not be used.
  Head(ParamStore* store, const ModelConfig& config, ParamId word_embeddings);

  // hidden [n, hidden] -> logits [n, labels of the adapter in use] f32; without dropout.
  Mat Logits(const Pass& pass, ConstMat hidden) const;

  // Summed loss of the batch's targets (or values), as the config's problem has it; `weights` are
  // those of labels. hidden [padded targets, hidden] as the encoder has it. With gradient_scale !=
  // 0 also adds the gradients of all parameters and writes that of hidden times the scale to
  // dhidden, of its shape; empty: not needed. Logits are made in chunks of rows, so that memory
  // does not grow with rows x vocab.
  LossSum Loss(const Pass& pass, ConstMat hidden, float gradient_scale, Mat dhidden,
      const LabelWeights& weights = {}) const;
  // What the batch's part of the loss has to be divided by in the end, summed over all batches of a
  // pass: targets, their weights, or targets times labels for several labels at once.
  double LossWeight(const Batch& batch, const LabelWeights& weights) const;

  // Scores of the chain over the labels (a CRF layer); `params` must outlive it. Only when there is
  // one.
  bool has_chain() const { return start_ >= 0; }
  Chain chain(const ParamStore& params) const;

  // Names of its own parameters, for messages about new ones.
  const std::vector<std::string>& names() const { return names_; }
  int64_t labels() const { return labels_; }

 private:
  struct Transformed;
  // Loss of `logits`, those of targets `first` on, with their gradient in place.
  LossSum LossOf(const Pass& pass, Mat logits, int64_t first, float gradient_scale,
      const LabelWeights& weights) const;
  // `pass` is that of the targets.
  Transformed Transform(const Pass& pass, ConstMat hidden) const;
  void TransformBackward(const Pass& pass, const Transformed& t, Mat dh, Mat dhidden) const;
  DropoutSite Site(const Pass& pass, DropoutPlace place) const;
  // Type of the logits whose loss is taken, and how many rows are made at once of `padded`.
  DType LogitType(const Pass& pass) const {
    return config_.head == HeadKind::kMaskedLm ? pass.compute : DType::kF32;
  }
  int64_t ChunkOf(const Pass& pass, int64_t padded) const;
  Weight decoder(const Pass& pass) const { return pass.weight(decoder_); }
  LossSum ChainLossOf(const Pass& pass, Mat logits, float gradient_scale) const;

  ModelConfig config_;
  bool dense_on_ = false, norm_on_ = false, dropout_before_ = false;
  ActivationKind activation_ = ActivationKind::kTanh;
  Linear dense_;
  Norm norm_;
  ParamId decoder_ = -1, bias_ = -1;  // [labels, hidden], [labels]
  ParamId start_ = -1, between_ = -1,
          end_ = -1;  // of the chain: [labels], [labels, labels], [labels]
  int64_t labels_ = 0;
  std::vector<std::string> names_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_HEAD_H_
