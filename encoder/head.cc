#include "encoder/head.h"

#include <algorithm>
#include <cstring>

#include "encoder/block.h"

namespace cloze {
namespace {

constexpr int64_t kLogitBytes = 32 << 20;  // of one chunk of logits

int64_t PaddedRows(int64_t n) {
  const int64_t multiple = n < 64 ? 8 : 64;
  return (n + multiple - 1) / multiple * multiple;
}

struct Names {
  std::string dense, norm, decoder, bias;
};

Names HeadNames(const ModelConfig& config) {
  const bool roberta = config.like_roberta();
  switch (config.head) {
    case HeadKind::kNone: return {};
    case HeadKind::kMaskedLm:
      return roberta ? Names{"lm_head.dense", "lm_head.layer_norm", "", "lm_head.bias"}
                     : Names{"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "", "cls.predictions.bias"};
    case HeadKind::kSequenceClassification:
      if (!config.pooler) return {"", "", "classifier.weight", "classifier.bias"};
      return roberta ? Names{"classifier.dense", "", "classifier.out_proj.weight", "classifier.out_proj.bias"}
                     : Names{"bert.pooler.dense", "", "classifier.weight", "classifier.bias"};
    case HeadKind::kTokenTagging: return {"", "", "classifier.weight", "classifier.bias"};
  }
  CLOZE_CHECK(false);
}

}  // namespace

struct Head::Transformed {
  Mat gathered, u, act;  // input of dense, its output, its activation; act is gathered when there is no dense
  Mat h;                 // [padded, hidden] what the decoder sees
  Norm::Saved norm;
  Batch keys;  // randomness of the gathered rows
};

Head::Head(ParamStore* store, const ModelConfig& config, ParamId word_embeddings) : config_(config) {
  if (config.head == HeadKind::kNone) return;
  const Names names = HeadNames(config);
  const int first = store->size();
  const bool mlm = config.head == HeadKind::kMaskedLm;
  dense_on_ = !names.dense.empty();
  norm_on_ = !names.norm.empty();
  dropout_before_ = !mlm && config.like_roberta() && dense_on_;
  if (mlm) activation_ = config.like_roberta() ? ActivationKind::kGelu : ActivationOf(config);
  if (dense_on_) dense_ = Linear(store, {names.dense}, config.hidden, config.hidden);
  if (norm_on_) norm_ = Norm(store, names.norm, config.hidden, config.norm_epsilon);
  labels_ = mlm ? config.vocab : static_cast<int64_t>(config.labels.size());
  decoder_ = mlm ? word_embeddings : store->AddMatrix(names.decoder, labels_, config.hidden);
  bias_ = store->AddVector(names.bias, labels_, Init::kZero);
  for (int id = first; id < store->size(); ++id) names_.push_back(store->param(id).name);
}

Head::Transformed Head::Transform(const Step& step, ConstMat hidden, absl::Span<const int32_t> rows) const {
  Transformed t;
  const int64_t padded = PaddedRows(rows.size());
  t.keys.row_examples.resize(padded);
  t.keys.positions.resize(padded);
  for (size_t i = 0; i < rows.size(); ++i) {
    t.keys.row_examples[i] = step.batch.row_examples[rows[i]];
    t.keys.positions[i] = step.batch.positions[rows[i]];
  }
  const RowKeys keys = {t.keys.row_examples.data(), t.keys.positions.data()};
  const float p = config_.head == HeadKind::kMaskedLm ? 0 : step.training ? config_.head_dropout() : 0;
  t.gathered = step.arena.NewZero(padded, config_.hidden, step.compute);
  GatherRows(hidden, rows, t.gathered);
  if (dropout_before_) Dropout(t.gathered, {p, step.seed, DropoutStream(DropoutPlace::kHeadInput), keys}, t.gathered);
  t.act = t.gathered;
  if (dense_on_) {
    t.u = step.New(padded, config_.hidden);
    t.act = step.New(padded, config_.hidden);
    dense_.Forward(step, t.gathered, t.u);
    ActivationForward(activation_, t.u, t.act);
  }
  t.h = step.New(padded, config_.hidden);
  if (norm_on_) {
    t.norm = norm_.Forward(step, {}, t.act, {}, {}, t.act, t.h);
  } else {
    Dropout(t.act, {p, step.seed, DropoutStream(DropoutPlace::kHeadOutput), keys}, t.h);
  }
  return t;
}

void Head::TransformBackward(const Step& step, const Transformed& t, Mat dh, absl::Span<const int32_t> rows, Mat dhidden) const {
  const RowKeys keys = {t.keys.row_examples.data(), t.keys.positions.data()};
  const float p = config_.head == HeadKind::kMaskedLm ? 0 : step.training ? config_.head_dropout() : 0;
  if (norm_on_) {
    norm_.Backward(step, t.norm, dh, {}, {}, {}, nullptr, dh, {});
  } else {
    Dropout(dh, {p, step.seed, DropoutStream(DropoutPlace::kHeadOutput), keys}, dh);
  }
  Mat dx = dh;
  if (dense_on_) {
    Mat act = step.New(dh.rows, dh.cols);
    ActivationBackward(activation_, t.u, dh, dense_.bias_grad(step), step.arena, act, dh);
    dx = step.New(dh.rows, dh.cols);
    dense_.Backward(step, t.gathered, dh, dx);
  }
  if (dropout_before_) Dropout(dx, {p, step.seed, DropoutStream(DropoutPlace::kHeadInput), keys}, dx);
  ScatterRows(dx, rows, dhidden);
}

Mat Head::Logits(const Step& step, ConstMat hidden, absl::Span<const int32_t> rows) const {
  const Transformed t = Transform(step, hidden, rows);
  Mat logits = step.arena.New(t.h.rows, labels_, DType::kF32);
  step.matmul.Forward(t.h, decoder(step), step.vector(bias_), logits);
  return logits;
}

LossSum Head::Loss(const Step& step, ConstMat hidden, float gradient_scale, Mat dhidden) const {
  const Arena::Mark mark = step.arena.mark();
  const absl::Span<const int32_t> rows = step.batch.rows;
  const Transformed t = Transform(step, hidden, rows);
  const int64_t count = rows.size();
  const int64_t chunk = std::max<int64_t>(64, kLogitBytes / SizeOf(step.compute) / labels_ / 64 * 64);
  Mat logits = step.New(std::min(chunk, t.h.rows), labels_);
  Mat dh = gradient_scale == 0 ? Mat() : step.New(t.h.rows, config_.hidden);
  LossSum sum;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t real = std::min(chunk, count - begin), padded = std::min(chunk, t.h.rows - begin);
    const ConstMat h = Rows(ConstMat(t.h), begin, padded);
    Mat part = Rows(logits, 0, padded);
    step.matmul.Forward(h, decoder(step), step.vector(bias_), part);
    const LossSum loss = SoftmaxCrossEntropy(Rows(part, 0, real), step.batch.targets.data() + begin, gradient_scale, step.arena);
    sum.loss += loss.loss;
    sum.correct += loss.correct;
    if (gradient_scale == 0) continue;
    std::memset(Rows(part, real, 0).data, 0, (padded - real) * labels_ * SizeOf(part.type));
    AddColumnSums(part, step.arena, step.vector_grad(bias_));
    if (Mat grad = step.weight_grad(decoder_); !grad.empty()) step.matmul.BackwardWeight(part, h, grad);
    step.matmul.BackwardData(part, decoder(step), Rows(dh, begin, padded));
  }
  if (gradient_scale != 0 && count > 0) TransformBackward(step, t, dh, rows, dhidden);
  step.arena.Rewind(mark);
  return sum;
}

}  // namespace cloze
