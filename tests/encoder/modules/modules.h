// Modules of encoder/ as the conformance test and the tests of whole models take them.
#ifndef CLOZE_TESTS_ENCODER_MODULES_MODULES_H_
#define CLOZE_TESTS_ENCODER_MODULES_MODULES_H_

#include <functional>
#include <memory>

#include "encoder/families/families.h"
#include "encoder/modules/encoder.h"
#include "tests/encoder/modules/loss.h"
#include "tests/reference/conformance.h"
#include "tests/reference/model.h"

namespace cloze::reference {

inline constexpr HeadKind kHeads[] = {
    HeadKind::kMaskedLm, HeadKind::kSequenceClassification, HeadKind::kTokenTagging};
inline constexpr uint64_t kSeed = 9;
// Families with the norms after and before the blocks.
inline constexpr char kPostNorm[] = "bert", kPreNorm[] = "roberta-prelayernorm";
// A family with rotary positions, local layers and gates.
inline constexpr char kModern[] = "modernbert";

struct Shape {
  int32_t hidden = 8, heads = 2, layers = 2, intermediate = 12, vocab = 11;
};

inline ModelConfig ConfigOf(
    const char* family, const Shape& s, float dropout, HeadKind head = HeadKind::kNone) {
  ModelConfig c(*FindFamily(family));
  c.hidden = s.hidden, c.heads = s.heads, c.layers = s.layers, c.intermediate = s.intermediate,
  c.vocab = s.vocab;
  c.head = head, c.dropout = dropout, c.attention.dropout = dropout / 2;
  c.positions.count = s.hidden <= 12 ? 9 : 140;
  c.positions.offset = c.positions.after_pad ? 1 : 0;
  if (family == std::string(kModern)) {
    c.attention.window = 10;
    for (int i = 0; i < c.layers; ++i) c.attention.local.push_back(i % 3 != 0);
  }
  if (family == std::string("deberta-v2")) {
    c.relative = {.span = 16,
        .furthest = c.positions.count,
        .query_terms = true,
        .key_terms = true,
        .shared = head != HeadKind::kTokenTagging,
        .norm = true};
    c.relative.convolution = head == HeadKind::kSequenceClassification ? 3 : 0;
  }
  c.pooler = head == HeadKind::kSequenceClassification;
  c.norm.epsilon = 1e-5;
  if (c.embeddings.size > 0) c.embeddings.size = s.hidden / 2;
  if (head == HeadKind::kSequenceClassification || head == HeadKind::kTokenTagging)
    c.labels = {"a", "b", "c"};
  return c;
}

// Sequences of these lengths; every third row has a target, or the first of each sequence.
inline Batch MakeBatch(const std::vector<int32_t>& lengths, const ModelConfig& config) {
  Batch b;
  std::mt19937 random(5);
  const int32_t labels = config.labels.empty() ? config.vocab : config.labels.size();
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int32_t i = 0; i < lengths[s]; ++i) {
      const bool target = config.head == HeadKind::kSequenceClassification ? i == 0 : i % 3 == 0;
      if (!target) continue;
      b.rows.push_back(b.tokens() + i);
      const bool several = config.problem_type == kMultiLabel,
                 number = config.problem_type == kRegression;
      if (!several && !number) b.targets.push_back(random() % labels);
      for (int32_t l = 0; l < labels && (several || number); ++l)
        b.values.push_back(several ? random() % 2 : 0.25f * static_cast<float>(random() % 9));
    }
    std::vector<int32_t> ids(lengths[s]);
    for (int32_t& id : ids) id = 1 + random() % (config.vocab - 1);  // no padding
    b.Add(ids, lengths[s] / 2, 1000 + s);
  }
  b.Pad();
  return b;
}

// The module under test, built on a store: adds its parameters in its constructor, then runs
// passes.
class Module {
 public:
  virtual ~Module() = default;
  // Inputs before the parameters, and results for them and dout. Gradients only of those inputs;
  // the parameters' are in the store.
  virtual Result Run(const Pass& pass, Workspace& s, const Inputs& p) const = 0;
};

// Everything an entry needs to know of a module.
struct Kind {
  ModelConfig config;
  Batch batch;
  std::vector<Input> inputs;  // before the parameters
  std::function<std::unique_ptr<Module>(ParamStore*)> make;
  std::function<bool(const Param&)> frozen = [](const Param&) { return false; };
};

inline void FillParams(const std::vector<std::pair<Param, Table<float>>>& values,
    const std::vector<Table<float>>& from, size_t first, ParamStore* store) {
  for (ParamId id = 0; id < store->size(); ++id)
    std::copy(from[first + id].v.begin(), from[first + id].v.end(), store->value(id).f32());
  CLOZE_CHECK(static_cast<int>(values.size()) == store->size());
  store->Changed();
}

inline std::vector<std::pair<Param, Table<float>>> RandomParams(const Kind& kind) {
  ParamStore store;
  const auto module = kind.make(&store);
  std::vector<std::pair<Param, Table<float>>> values;
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& p = store.param(id);
    const bool gain = p.init == Init::kOne,
               table = p.name.find("embeddings.weight") != std::string::npos;
    const float deviation = p.vector || table ? 0.3f : 1.0f / std::sqrt(static_cast<float>(p.cols));
    values.emplace_back(p, RandomTable(p.rows, p.cols, 100 + id, deviation, gain ? 1 : 0));
  }
  return values;
}

inline Entry EntryOf(const std::string& name, DType type, double roundings,
    std::shared_ptr<const Kind> kind, const std::vector<std::pair<Param, Table<float>>>& params) {
  Entry e;
  e.name = name + (type == DType::kF32 ? "" : "_bf16");
  e.path = {4 * kind->batch.padded_rows(), roundings, type};
  e.live_rows = kind->batch.tokens();
  e.inputs = kind->inputs;
  const size_t first = e.inputs.size();
  for (const auto& [param, value] : params) {
    e.inputs.push_back(
        {param.name, kind->frozen(param) ? Role::kConstant : Role::kParameter, value});
    // A bias of all keys moves all scores of a query alike: its gradient is 0, up to rounding of
    // summands as large as those of the query's bias.
    if (param.role == cloze::Role::kKey && param.kind == ParamKind::kBias)
      e.inputs.back().norm_of = static_cast<int>(e.inputs.size()) - 2;
  }
  e.run = [=](const Inputs& p) {
    ParamStore store;
    const auto module = kind->make(&store);
    for (ParamId id = 0; id < store.size(); ++id) {
      if (kind->frozen(store.param(id))) store.Edit(id).trainable = false;
    }
    store.Allocate(true);
    FillParams(params, p.inputs, first, &store);
    Workspace s(p.type);
    const Pass pass = {store, s.matmul, s.arena, kind->batch, kSeed, true, p.type};
    Result r = module->Run(pass, s, p);
    for (ParamId id = 0; id < store.size() && !p.dout.empty(); ++id)
      r.gradients.push_back(Workspace::Get(store.grad(id)));
    return r;
  };
  return e;
}

// Hidden states of rows with a target, and zeros in the others.
struct EncoderModule : Module {
  Encoder encoder;
  EncoderModule(ParamStore* store, const ModelConfig& config)
      : encoder(NewEncoder(store, config)) {}
  Result Run(const Pass& pass, Workspace& s, const Inputs& p) const override {
    const Encoder::Saved saved = encoder.Forward(pass);
    const Mat y = pass.New(pass.batch.padded_rows(), saved.y.cols);
    saved.targets->Scatter(saved.y, y);
    Result r = {{Workspace::Get(y)}, {}};
    for (int i = 0; i < p.backwards && !p.dout.empty(); ++i)
      encoder.Backward(pass, saved, saved.targets->Gather(pass, s.Put(p.dout[0])));
    return r;
  }
};

inline std::shared_ptr<Kind> EncoderKind(
    const ModelConfig& config, const std::vector<int32_t>& lengths) {
  auto kind = std::make_shared<Kind>();
  kind->config = config;
  kind->batch = MakeBatch(lengths, config);
  kind->make = [=](ParamStore* store) { return std::make_unique<EncoderModule>(store, config); };
  return kind;
}

// A head on hidden states that are its input.
struct HeadModule : Module {
  ModelConfig config;
  Head head;
  LabelWeights weights;
  HeadModule(ParamStore* store, const ModelConfig& config, const LabelWeights& w = {})
      : config(config),
        head(NewHead(store, config,
            config.head == HeadKind::kMaskedLm
                ? store->AddMatrix(
                      KeyOf(config.Key(cloze::Role::kWordEmbeddings, -1), ParamKind::kWeight),
                      config.vocab, config.embedding_size())
                : -1)),
        weights(w) {}
  Result Run(const Pass& pass, Workspace& s, const Inputs& p) const override {
    const TargetRows targets(pass);
    const Mat hidden = targets.Gather(pass, s.Put(p.inputs[0]));
    const double loss = LossOf(head, config, pass, hidden, 0, {}, weights).loss;
    Result r = {{Table<float>(1, 1, {static_cast<float>(loss)})}, {}};
    if (p.dout.empty()) return r;
    Mat d;
    for (int i = 0; i < p.backwards; ++i) {
      d = pass.New(hidden.rows, hidden.cols);
      EXPECT_EQ(LossOf(head, config, pass, hidden, p.dout[0].v[0], d, weights).loss, loss)
          << "with and without gradients";
    }
    const Mat all = s.Put(p.inputs[0]);
    targets.Scatter(d, all);
    r.gradients = {Workspace::Get(all)};
    return r;
  }
};

// Encoder and head: from ids to loss.
struct WholeModule : Module {
  ModelConfig config;
  Encoder encoder;
  Head head;
  WholeModule(ParamStore* store, const ModelConfig& config)
      : config(config), encoder(NewEncoder(store, config)),
        head(NewHead(store, config, encoder.word_embeddings())) {}
  Result Run(const Pass& pass, Workspace& s, const Inputs& p) const override {
    const Encoder::Saved saved = encoder.Forward(pass);
    Result r = {
        {Table<float>(1, 1, {static_cast<float>(LossOf(head, config, pass, saved.y, 0, {}).loss)})},
        {}};
    for (int i = 0; i < p.backwards && !p.dout.empty(); ++i) {
      const Mat dy = s.New(saved.y.rows, saved.y.cols);
      LossOf(head, config, pass, saved.y, p.dout[0].v[0], dy);
      encoder.Backward(pass, saved, dy);
    }
    return r;
  }
};

inline std::shared_ptr<Kind> WholeKind(
    const ModelConfig& config, const std::vector<int32_t>& lengths) {
  auto kind = EncoderKind(config, lengths);
  kind->make = [=](ParamStore* store) { return std::make_unique<WholeModule>(store, config); };
  return kind;
}

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_ENCODER_MODULES_MODULES_H_
