// What turns hidden states into logits, for every task: gather rows, a small transform, a linear layer, softmax cross entropy.
#ifndef CLOZE_ENCODER_HEAD_H_
#define CLOZE_ENCODER_HEAD_H_

#include <string>
#include <vector>

#include "encoder/config.h"
#include "encoder/linear.h"
#include "encoder/norm.h"

namespace cloze {

// masked_lm: norm(act(dense)), decoder tied to the word embeddings; sequence_classification: optional tanh(dense) on <class>;
// token_tagging: nothing before the classifier. Dropout where Hugging Face has it.
class Head {
 public:
  // config.head says which; kNone makes an empty head that must not be used.
  Head(ParamStore* store, const ModelConfig& config, ParamId word_embeddings);

  // logits [rows.size() rounded up, labels of the adapter in use] f32 of hidden[rows]; without dropout. Rows behind rows.size() are
  // meaningless.
  Mat Logits(const Step& step, ConstMat hidden, absl::Span<const int32_t> rows) const;

  // Summed loss of the batch's targets. With gradient_scale != 0 also adds the gradients of all parameters and writes the gradient of
  // hidden [rows, hidden] times the scale to dhidden, which is zero before; empty: not needed. Logits are made in chunks of rows, so that
  // memory does not grow with rows x vocab.
  LossSum Loss(const Step& step, ConstMat hidden, float gradient_scale, Mat dhidden) const;

  // Names of its own parameters, for messages about new ones.
  const std::vector<std::string>& names() const { return names_; }
  int64_t labels() const { return labels_; }

 private:
  struct Transformed;
  Transformed Transform(const Step& step, ConstMat hidden, absl::Span<const int32_t> rows) const;
  void TransformBackward(const Step& step, const Transformed& t, Mat dh, absl::Span<const int32_t> rows, Mat dhidden) const;
  Weight decoder(const Step& step) const { return step.weight(decoder_); }

  ModelConfig config_;
  bool dense_on_ = false, norm_on_ = false, dropout_before_ = false;
  ActivationKind activation_ = ActivationKind::kTanh;
  Linear dense_;
  Norm norm_;
  ParamId decoder_ = -1, bias_ = -1;  // [labels, hidden], [labels]
  int64_t labels_ = 0;
  std::vector<std::string> names_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_HEAD_H_
