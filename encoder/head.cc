#include "encoder/head.h"

#include <algorithm>
#include <cstring>

#include "encoder/block.h"

namespace cloze {
namespace {

constexpr int64_t kLogitBytes = 32 << 20;  // of one chunk of logits
constexpr float kChainRate = 50;           // scores of a chain are as large as logits; at an encoder's rate they would hardly leave 0

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
  if (config.head == HeadKind::kTokenTagging && config.crf) {  // names of the pytorch-crf library
    start_ = store->AddVector("crf.start_transitions", labels_, Init::kZero);
    between_ = store->AddMatrix("crf.transitions", labels_, labels_);
    end_ = store->AddVector("crf.end_transitions", labels_, Init::kZero);
    for (const ParamId id : {start_, between_, end_}) store->SetRate(id, kChainRate);
  }
  for (ParamId id = first; id < store->size(); ++id) {
    names_.push_back(store->param(id).name);
    if (!mlm && !store->param(id).vector) store->SetInit(id, Init::kWholeNormal);
  }
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
  Mat dx = dhidden.empty() ? Mat() : dh;
  if (dense_on_) {
    Mat act = step.New(dh.rows, dh.cols);
    ActivationBackward(activation_, t.u, dh, dense_.bias_grad(step), step.arena, act, dh);
    if (!dx.empty()) dx = step.New(dh.rows, dh.cols);
    dense_.Backward(step, t.gathered, dh, dx);
  }
  if (dx.empty()) return;
  if (dropout_before_) Dropout(dx, {p, step.seed, DropoutStream(DropoutPlace::kHeadInput), keys}, dx);
  ScatterRows(dx, rows, dhidden);
}

Mat Head::Logits(const Step& step, ConstMat hidden, absl::Span<const int32_t> rows) const {
  const Transformed t = Transform(step, hidden, rows);
  Mat logits = step.arena.New(t.h.rows, decoder(step).w.rows, DType::kF32);
  step.matmul.Forward(t.h, decoder(step), step.vector(bias_), logits);
  return logits;
}

Chain Head::chain(const ParamStore& params) const {
  return {params.value(start_).f32(), params.value(between_).f32(), params.value(end_).f32()};
}

LossSum Head::ChainLossOf(const Step& step, Mat logits, float gradient_scale) const {
  const Batch& batch = step.batch;
  std::vector<int32_t> words = {0};  // first target of each sequence
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    words.push_back(std::lower_bound(batch.rows.begin(), batch.rows.end(), batch.cu_seqlens[s + 1]) - batch.rows.begin());
  }
  const bool training = gradient_scale != 0;
  const ChainGrads grads =
      training ? ChainGrads{step.vector_grad(start_), step.vector_grad(between_), step.vector_grad(end_)} : ChainGrads();
  return ChainLoss(logits, words, batch.targets.data(), chain(step.params), gradient_scale, grads, step.arena);
}

LossSum Head::LossOf(const Step& step, Mat logits, int64_t first, float gradient_scale, const LabelWeights& weights) const {
  if (has_chain()) return ChainLossOf(step, logits, gradient_scale);
  const int32_t* targets = step.batch.targets.data() + first;
  const float* values = step.batch.values.data() + first * labels_;
  switch (config_.problem) {
    case Problem::kSingleLabel:
      if (weights.plain()) return SoftmaxCrossEntropy(logits, targets, gradient_scale, step.arena);
      return WeightedCrossEntropy(logits, targets, weights, gradient_scale, step.arena);
    case Problem::kMultiLabel: return BinaryCrossEntropy(logits, values, gradient_scale, step.arena);
    case Problem::kRegression: return SquaredError(logits, values, gradient_scale, step.arena);
  }
  CLOZE_CHECK(false);
}

double Head::LossWeight(const Batch& batch, const LabelWeights& weights) const {
  if (config_.problem != Problem::kSingleLabel) return static_cast<double>(batch.values.size());
  if (weights.weights.empty()) return static_cast<double>(batch.targets.size());
  double sum = 0;
  for (const int32_t target : batch.targets) sum += weights.weights[target];
  return sum;
}

int64_t Head::ChunkOf(const Step& step, int64_t padded) const {
  const int64_t chunk = std::max<int64_t>(64, kLogitBytes / SizeOf(LogitType(step)) / labels_ / 64 * 64);
  return has_chain() ? std::max(chunk, padded) : chunk;  // a sequence cannot be cut
}

LossSum Head::Loss(const Step& step, ConstMat hidden, float gradient_scale, Mat dhidden, const LabelWeights& weights) const {
  const Arena::Mark mark = step.arena.mark();
  const absl::Span<const int32_t> rows = step.batch.rows;
  const Transformed t = Transform(step, hidden, rows);
  const int64_t count = rows.size();
  const DType type = LogitType(step);
  const int64_t chunk = ChunkOf(step, t.h.rows);
  Mat logits = step.arena.New(std::min(chunk, t.h.rows), labels_, type);
  Mat narrow = type == step.compute ? Mat() : step.New(logits.rows, labels_);
  Mat dh = gradient_scale == 0 ? Mat() : step.New(t.h.rows, config_.hidden);
  LossSum sum;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t real = std::min(chunk, count - begin), padded = std::min(chunk, t.h.rows - begin);
    const ConstMat h = Rows(ConstMat(t.h), begin, padded);
    Mat part = Rows(logits, 0, padded);
    step.matmul.Forward(h, decoder(step), step.vector(bias_), part);
    const LossSum loss = LossOf(step, Rows(part, 0, real), begin, gradient_scale, weights);
    sum.loss += loss.loss;
    sum.correct += loss.correct;
    if (gradient_scale == 0) continue;
    std::memset(Rows(part, real, 0).data, 0, (padded - real) * labels_ * SizeOf(part.type));
    AddColumnSums(part, step.arena, step.vector_grad(bias_));
    if (!narrow.empty()) {
      Convert(part, Rows(narrow, 0, padded));
      part = Rows(narrow, 0, padded);
    }
    if (Mat grad = step.weight_grad(decoder_); !grad.empty()) step.matmul.BackwardWeight(part, h, grad);
    step.matmul.BackwardData(part, decoder(step), Rows(dh, begin, padded));
  }
  if (gradient_scale != 0 && count > 0) TransformBackward(step, t, dh, rows, dhidden);
  step.arena.Rewind(mark);
  return sum;
}

}  // namespace cloze
