#include "encoder/modules/head.h"

#include <algorithm>

#include "core/ops/rows.h"
#include "encoder/graph/ops.h"

namespace cloze {
namespace {

constexpr int64_t kLogitBytes = 32 << 20;  // per chunk
// CRF scores are as large as logits; at an encoder's learning rate they would stay near 0.
constexpr float kCrfRate = 50;

}  // namespace

struct Head::BeforeOutput {
  ConstMat x;  // [rows, hidden] input of dense
  Mat u, act;  // output of dense, activation
  Mat h;       // input of the decoder
  Norm::Saved norm;
};

HeadLayout LayoutOf(const ModelShape& config) {
  const HeadType& type = TypeOf(config.head);
  const bool pooler = type.pooler && config.pooler,
             discriminator = config.head == HeadKind::kReplacedTokens;
  HeadLayout layout;
  layout.norm =
      (type.tied && config.transform) || (config.transform_always && (pooler || !type.pooler));
  if (layout.norm) {
    layout.dense = Role::kTransform;
    layout.activation = config.transform_activation.value_or(config.mlp.activation);
  } else if (pooler) {
    layout.dense = discriminator ? Role::kDiscriminator : Role::kPooler;
    layout.activation = discriminator ? config.mlp.activation : config.pooler_activation;
  }
  if (pooler) layout.output = discriminator ? Role::kDiscriminatorOutput : Role::kPooledOutput;
  return layout;
}

Head::Head(ParamStore* store, const ModelShape& config, ModuleKeys keys, ParamId word_embeddings)
    : config_(config), type_(TypeOf(config.head)), width_(config.hidden) {
  if (config.head == HeadKind::kNone) return;
  const int64_t hidden = config.hidden;
  const auto key = [&](Role role) { return keys(role, config.layers); };
  const ParamId first = store->size();
  labels_ = config.logits();
  layout_ = LayoutOf(config);
  if (type_.tied) width_ = config.embedding_size();
  if (has_dense()) {
    const bool biases = !layout_.norm || config.norm.biases;
    dense_ = Linear(store, {key(*layout_.dense)}, hidden, width_, biases);
  }
  if (layout_.norm) {
    norm_ = Norm(store, key(Role::kTransformNorm), width_, config.norm.epsilon, config.norm.biases);
  }
  if (type_.tied) {
    decoder_ = config.untied ? store->AddMatrix(
                                   KeyOf(key(Role::kDecoder), ParamKind::kWeight), labels_, width_)
                             : word_embeddings;
    const ParamKey bias = key(Role::kDecoderBias);
    if (config.output_bias == OutputBias::kFixed) {  // a row, as in transformers
      bias_ = store->AddMatrix(bias, 1, labels_, false, Init::kZero);
      store->Edit(bias_).trainable = false;
    } else if (config.output_bias == OutputBias::kTrained)
      bias_ = store->AddVector(KeyOf(bias, ParamKind::kBias), labels_, Init::kZero);
    return;
  }
  const ParamKey output = key(layout_.output);
  decoder_ = store->AddMatrix(KeyOf(output, ParamKind::kWeight), labels_, hidden);
  bias_ = store->AddVector(KeyOf(output, ParamKind::kBias), labels_, Init::kZero);
  if (config.crf) AddCrf(store);
  for (ParamId id = first; id < store->size(); ++id) {
    if (!store->param(id).vector) store->Edit(id).init = Init::kWholeNormal;
  }
}

// Uses the names of the pytorch-crf library.
void Head::AddCrf(ParamStore* store) {
  const auto key = [&](const char* name) {
    return ParamKey{.name = name, .role = Role::kCrf, .layer = config_.layers};
  };
  start_ = store->AddVector(key("crf.start_transitions"), labels_, Init::kZero);
  between_ = store->AddMatrix(key("crf.transitions"), labels_, labels_);
  end_ = store->AddVector(key("crf.end_transitions"), labels_, Init::kZero);
  for (const ParamId id : {start_, between_, end_}) store->Edit(id).rate = kCrfRate;
}

DropoutSite Head::Site(const Pass& pass, DropoutKind kind) const {
  return pass.Site(type_.labelled ? config_.head_dropout() : 0, DropoutSiteId(kind));
}

Head::BeforeOutput Head::ForwardBeforeOutput(const Pass& pass, ConstMat hidden) const {
  BeforeOutput t;
  const auto matrix = [&] { return pass.New(hidden.rows, width_); };
  t.x = hidden;
  if (drops_input()) {
    Mat dropped = pass.New(hidden.rows, hidden.cols);
    Dropout(hidden, Site(pass, DropoutKind::kHeadInput), dropped);
    t.x = dropped;
  }
  if (has_dense()) {
    t.u = matrix();
    t.act = matrix();
    dense_.Forward(pass, t.x, t.u);
    ActivationForward(layout_.activation, t.u, t.act);
  }
  t.h = matrix();
  if (layout_.norm) {
    t.norm = norm_.Forward(pass, {}, t.act, {}, Site(pass, DropoutKind::kHeadOutput), t.act, t.h);
  } else {
    Dropout(has_dense() ? ConstMat(t.act) : t.x, Site(pass, DropoutKind::kHeadOutput), t.h);
  }
  return t;
}

void Head::BackwardBeforeOutput(
    const Pass& pass, const BeforeOutput& t, Mat dh, Mat dhidden) const {
  if (layout_.norm) {
    norm_.Backward(pass, t.norm, dh, {}, {}, Site(pass, DropoutKind::kHeadOutput), nullptr, dh, {});
  } else if (has_dense() || !dhidden.empty()) {
    Dropout(dh, Site(pass, DropoutKind::kHeadOutput), has_dense() ? dh : dhidden);
  }
  if (has_dense()) {
    Mat act = pass.New(dh.rows, dh.cols);
    ActivationBackward(layout_.activation, t.u, dh, dense_.bias_grad(pass), pass.arena, act, dh);
    dense_.Backward(pass, t.x, dh, dhidden);
  }
  if (drops_input() && !dhidden.empty())
    Dropout(dhidden, Site(pass, DropoutKind::kHeadInput), dhidden);
}

Mat Head::Logits(const Pass& pass, ConstMat hidden) const {
  const BeforeOutput t = ForwardBeforeOutput(pass, hidden);
  const Weight decoder = pass.weight(decoder_);
  Mat logits = pass.arena.New(t.h.rows, decoder.w.rows, DType::kF32);
  pass.matmul.Forward(t.h, decoder, pass.vector(bias_), logits);
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
  CrfGrads grads = {};
  if (scale != 0)
    grads = {pass.vector_grad(start_), pass.vector_grad(between_), pass.vector_grad(end_)};
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
  const Pass narrowed = TargetRows(pass).Narrow(pass);
  const BeforeOutput t = ForwardBeforeOutput(narrowed, hidden);
  const int64_t count = pass.batch.rows.size();
  CLOZE_CHECK(hidden.rows == PaddedRows(count));
  const DType type = LogitType(pass);
  const int64_t chunk = ChunkOf(pass, t.h.rows);
  Mat logits = pass.arena.New(std::min(chunk, t.h.rows), labels_, type);
  Mat narrow = type == pass.compute ? Mat() : pass.New(logits.rows, labels_);
  Mat dh = scale == 0 ? Mat() : pass.New(t.h.rows, width_);
  LossSum sum;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t real = std::min(chunk, count - begin), padded = std::min(chunk, t.h.rows - begin);
    const ConstMat h = Rows(ConstMat(t.h), begin, padded);
    Mat part = Rows(logits, 0, padded);
    pass.matmul.Forward(h, pass.weight(decoder_), pass.vector(bias_), part);
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
    pass.matmul.BackwardData(part, pass.weight(decoder_), Rows(dh, begin, padded));
  }
  if (scale != 0 && count > 0) BackwardBeforeOutput(narrowed, t, dh, dhidden);
  pass.arena.Rewind(mark);
  return sum;
}

Value Head::Export(const GraphPass& pass, const Value& hidden, const Value& name) const {
  OnnxGraph& graph = pass.graph;
  Value x = hidden;
  if (has_dense()) x = AddActivation(graph, layout_.activation, dense_.Export(pass, x));
  if (layout_.norm) x = norm_.Export(pass, x);
  // A tied matrix is also the table of the word embeddings, which is not transposed.
  const Value decoder = type_.tied ? graph.Transpose(pass.value(decoder_), {1, 0})
                                   : graph.Transposed(pass.params.param(decoder_).name,
                                         pass.params.value(decoder_)),
              product = graph.Add("MatMul", {x, decoder});
  return graph.Add("Add", {product, pass.vector(bias_)}, {}, name);
}

}  // namespace cloze
