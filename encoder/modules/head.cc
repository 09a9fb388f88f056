#include "encoder/modules/head.h"

#include <algorithm>

#include "core/ops/elementwise.h"
#include "core/ops/rows.h"
#include "encoder/modules/block.h"

namespace cloze {
namespace {

constexpr int64_t kLogitBytes = 32 << 20;  // of one chunk of logits
constexpr float kCrfRate =
    50;  // scores of a chain are as large as logits; at an encoder's rate they would hardly leave 0

struct Names {
  std::string dense, norm, decoder, bias;
};

Names HeadNames(const ModelConfig& config) {
  const bool roberta = config.like_roberta();
  switch (config.head) {
    case HeadKind::kNone: return {};
    case HeadKind::kMaskedLm:
      return roberta ? Names{"lm_head.dense", "lm_head.layer_norm", "", "lm_head.bias"}
                     : Names{"cls.predictions.transform.dense",
                           "cls.predictions.transform.LayerNorm", "", "cls.predictions.bias"};
    case HeadKind::kSequenceClassification:
      if (!config.pooler) return {"", "", "classifier.weight", "classifier.bias"};
      return roberta ? Names{"classifier.dense", "", "classifier.out_proj.weight",
                           "classifier.out_proj.bias"}
                     : Names{"bert.pooler.dense", "", "classifier.weight", "classifier.bias"};
    case HeadKind::kTokenTagging: return {"", "", "classifier.weight", "classifier.bias"};
  }
  CLOZE_CHECK(false);
}

}  // namespace

struct Head::Transformed {
  ConstMat x;  // [rows, hidden] input of dense
  Mat u, act;  // its output, its activation
  Mat h;       // what the decoder sees
  Norm::Saved norm;
};

Head::Head(ParamStore* store, const ModelConfig& config, ParamId word_embeddings)
    : config_(config) {
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
    for (const ParamId id : {start_, between_, end_}) store->SetRate(id, kCrfRate);
  }
  for (ParamId id = first; id < store->size(); ++id) {
    names_.push_back(store->param(id).name);
    if (!mlm && !store->param(id).vector) store->SetInit(id, Init::kWholeNormal);
  }
}

DropoutSite Head::Site(const Pass& pass, DropoutPlace place) const {
  return pass.Site(
      config_.head == HeadKind::kMaskedLm ? 0 : config_.head_dropout(), DropoutSiteId(place));
}

Head::Transformed Head::Transform(const Pass& pass, ConstMat hidden) const {
  Transformed t;
  const auto matrix = [&] { return pass.New(hidden.rows, config_.hidden); };
  t.x = hidden;
  if (dropout_before_) {
    Mat dropped = matrix();
    Dropout(hidden, Site(pass, DropoutPlace::kHeadInput), dropped);
    t.x = dropped;
  }
  if (dense_on_) {
    t.u = matrix();
    t.act = matrix();
    dense_.Forward(pass, t.x, t.u);
    ActivationForward(activation_, t.u, t.act);
  }
  t.h = matrix();
  if (norm_on_) {
    t.norm = norm_.Forward(pass, {}, t.act, {}, {}, t.act, t.h);
  } else {
    Dropout(dense_on_ ? ConstMat(t.act) : t.x, Site(pass, DropoutPlace::kHeadOutput), t.h);
  }
  return t;
}

void Head::TransformBackward(const Pass& pass, const Transformed& t, Mat dh, Mat dhidden) const {
  if (norm_on_) {
    norm_.Backward(pass, t.norm, dh, {}, {}, {}, nullptr, dh, {});
  } else if (dense_on_ || !dhidden.empty()) {
    Dropout(dh, Site(pass, DropoutPlace::kHeadOutput), dense_on_ ? dh : dhidden);
  }
  if (dense_on_) {
    Mat act = pass.New(dh.rows, dh.cols);
    ActivationBackward(activation_, t.u, dh, dense_.bias_grad(pass), pass.arena, act, dh);
    dense_.Backward(pass, t.x, dh, dhidden);
  }
  if (dropout_before_ && !dhidden.empty())
    Dropout(dhidden, Site(pass, DropoutPlace::kHeadInput), dhidden);
}

Mat Head::Logits(const Pass& pass, ConstMat hidden) const {
  const Transformed t = Transform(pass, hidden);
  Mat logits = pass.arena.New(t.h.rows, decoder(pass).w.rows, DType::kF32);
  pass.matmul.Forward(t.h, decoder(pass), pass.vector(bias_), logits);
  return logits;
}

Crf Head::crf(const ParamStore& params) const {
  return {params.value(start_).f32(), params.value(between_).f32(), params.value(end_).f32()};
}

LossSum Head::CrfLoss(const Pass& pass, Mat logits, float scale) const {
  const Batch& batch = pass.batch;
  std::vector<int32_t> words = {0};  // first target of each sequence
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    words.push_back(
        std::lower_bound(batch.rows.begin(), batch.rows.end(), batch.cu_seqlens[s + 1]) -
        batch.rows.begin());
  }
  const bool training = scale != 0;
  const CrfGrads grads = training ? CrfGrads{pass.vector_grad(start_), pass.vector_grad(between_),
                                        pass.vector_grad(end_)}
                                  : CrfGrads();
  return cloze::CrfLoss(
      logits, words, batch.targets.data(), crf(pass.params), scale, grads, pass.arena);
}

int64_t Head::ChunkOf(const Pass& pass, int64_t padded) const {
  const int64_t chunk =
      std::max<int64_t>(64, kLogitBytes / SizeOf(LogitType(pass)) / labels_ / 64 * 64);
  return has_crf() ? std::max(chunk, padded) : chunk;  // a sequence cannot be cut
}

LossSum Head::Loss(
    const Pass& pass, ConstMat hidden, float scale, Mat dhidden, LossFunction loss) const {
  const Arena::Mark mark = pass.arena.mark();
  const Pass late = TargetRows(pass).Narrow(pass);
  const Transformed t = Transform(late, hidden);
  const int64_t count = pass.batch.rows.size();
  CLOZE_CHECK(hidden.rows == PaddedRows(count));
  const DType type = LogitType(pass);
  const int64_t chunk = ChunkOf(pass, t.h.rows);
  Mat logits = pass.arena.New(std::min(chunk, t.h.rows), labels_, type);
  Mat narrow = type == pass.compute ? Mat() : pass.New(logits.rows, labels_);
  Mat dh = scale == 0 ? Mat() : pass.New(t.h.rows, config_.hidden);
  LossSum sum;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t real = std::min(chunk, count - begin), padded = std::min(chunk, t.h.rows - begin);
    const ConstMat h = Rows(ConstMat(t.h), begin, padded);
    Mat part = Rows(logits, 0, padded);
    pass.matmul.Forward(h, decoder(pass), pass.vector(bias_), part);
    const LossSum of_part = loss(Rows(part, 0, real), begin, scale, pass.arena);
    sum.loss += of_part.loss;
    sum.correct += of_part.correct;
    if (scale == 0) continue;
    ZeroRowsFrom(part, real);
    AddColumnSums(part, pass.arena, pass.vector_grad(bias_));
    if (!narrow.empty()) {
      Convert(part, Rows(narrow, 0, padded));
      part = Rows(narrow, 0, padded);
    }
    if (Mat grad = pass.weight_grad(decoder_); !grad.empty())
      pass.matmul.BackwardWeight(part, h, grad);
    pass.matmul.BackwardData(part, decoder(pass), Rows(dh, begin, padded));
  }
  if (scale != 0 && count > 0) TransformBackward(late, t, dh, dhidden);
  pass.arena.Rewind(mark);
  return sum;
}

}  // namespace cloze
