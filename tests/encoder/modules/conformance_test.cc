// Every module of encoder/ against its reference, by the rules of tests/reference/conformance.h.
#include <gtest/gtest.h>

#include "core/ops/rows.h"
#include "tests/encoder/modules/modules.h"

namespace cloze::reference {
namespace {

template <typename S>
reference::Model<S> ModelOf(const Kind& kind, const Entry& e, const Tables<S>& in) {
  reference::Model<S> m = {kind.config, kind.batch, {}, kSeed, true};
  for (size_t i = 0; i < in.size(); ++i) m.params.emplace(e.inputs[i].name, in[i]);
  return m;
}

// `f(model, inputs)` as the entry's reference.
template <typename F>
Entry WithReference(Entry e, std::shared_ptr<const Kind> kind, F f) {
  const Entry names = e;
  e.SetReference([=]<typename S>(const Tables<S>& in) { return f(ModelOf(*kind, names, in), in); });
  return e;
}

// Three layers with one input as one product.
struct LinearModule : Module {
  cloze::Linear linear;
  LinearModule(ParamStore* store, int64_t in, int64_t out)
      : linear(store, {{"a"}, {"b"}, {"c"}}, in, out) {}
  Result Run(const Pass& pass, Workspace& s, const Inputs& p) const override {
    const Mat x = s.Put(p.inputs[0]), y = s.New(x.rows, linear.out()),
              dx = p.need_dx ? s.New(x.rows, x.cols) : Mat();
    linear.Forward(pass, x, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat dy = s.Put(p.dout[0]);
    for (int i = 0; i < p.backwards; ++i) {
      AddColumnSums(dy, pass.arena, linear.bias_grad(pass));
      linear.Backward(pass, x, dy, dx);
    }
    r.gradients = {Workspace::Get(dx)};
    return r;
  }
};

Entry LinearEntry(int64_t rows, int64_t in, int64_t out, DType type) {
  auto kind = std::make_shared<Kind>();
  kind->inputs = {{"x", Role::kActivation, RandomTable(rows, in, 1)}};
  kind->make = [=](ParamStore* store) { return std::make_unique<LinearModule>(store, in, out); };
  Entry e = EntryOf(
      absl::StrCat("Linear_", rows, "x", in, "x3x", out), type, 2, kind, RandomParams(*kind));
  e.path.terms = std::max({rows, in, 3 * out});
  e.live_rows = rows;
  return WithReference(e, kind, []<typename S>(const reference::Model<S>& m, const Tables<S>& in) {
    Table<S> y(in[0].rows, 0);
    for (const std::string name : {"a", "b", "c"}) {
      const Table<S> part = m.Dense(in[0], name);
      Table<S> wider(y.rows, y.cols + part.cols);
      for (int64_t r = 0; r < y.rows; ++r) {
        for (int64_t c = 0; c < wider.cols; ++c)
          wider(r, c) = c < y.cols ? y(r, c) : part(r, c - y.cols);
      }
      y = wider;
    }
    return Tables<S>{y};
  });
}

// With alpha 2.25, B A is smaller than W. Larger sums of both saturate the softmax of an encoder
// with random weights, which magnifies rounding errors.
LoraPlan PlanOf(float dropout, std::function<bool(const ParamKey&)> wanted) {
  return {3, 2.25f / 3, dropout, std::move(wanted)};
}

// The same with LoRA on the first and the last of them, and on none for another adapter.
struct LoraModule : LinearModule {
  LoraModule(ParamStore* store, int64_t in, int64_t out, float dropout)
      : LinearModule(store, in, out) {
    linear.AddLora(
        store, PlanOf(dropout, [](const ParamKey& layer) { return layer.name != "b"; }), 5);
    LoraPlan other = PlanOf(dropout, [](const ParamKey& layer) { return layer.name == "b"; });
    other.adapter = 1;
    linear.AddLora(store, other, 5);
  }
};

Entry LoraEntry(int64_t in, int64_t out, float dropout, DType type) {
  auto kind = std::make_shared<Kind>();
  kind->config.positions.count = 200;
  kind->config.vocab = 3;
  kind->batch = MakeBatch({60, 1, 70}, kind->config);
  const int64_t rows = kind->batch.padded_rows();
  kind->inputs = {{"x", Role::kActivation, RandomTable(rows, in, 1)}};
  kind->make = [=](ParamStore* store) {
    return std::make_unique<LoraModule>(store, in, out, dropout);
  };
  kind->frozen = [](const Param& p) {
    return p.adapter == 1 || (p.adapter < 0 && p.kind == ParamKind::kWeight);
  };
  Entry e = EntryOf(absl::StrCat("Lora_", in, "x3x", out, dropout > 0 ? "_dropout" : ""), type, 6,
      kind, RandomParams(*kind));
  return WithReference(e, kind, [=]<typename S>(const reference::Model<S>& m, const Tables<S>& in) {
    Table<S> y(in[0].rows, 3 * out);
    for (int part = 0; part < 3; ++part) {
      const std::string name(1, static_cast<char>('a' + part));
      Table<S> sum = m.Dense(in[0], name);
      if (part != 1) {
        DropoutSite site = m.Site(dropout, DropoutKind::kLora);
        site.site = 5 + part;
        const Table<S> x = Dropout(in[0], site);
        Table<S> low =
            Linear(Linear(x, m.matrix(name + ".lora_A.weight")), m.matrix(name + ".lora_B.weight"));
        for (S& value : low.v) value *= S(2.25 / 3);
        sum = sum + low;
      }
      for (int64_t r = 0; r < y.rows; ++r) {
        for (int64_t c = 0; c < out; ++c) y(r, part * out + c) = sum(r, c);
      }
    }
    return Tables<S>{y};
  });
}

struct BlockModule : Module {
  bool pre;
  Block block;
  BlockModule(ParamStore* store, const ModelConfig& config)
      : pre(config.pre_norm()),
        block(
            store, config, [&](cloze::Role role, int layer) { return config.Key(role, layer); },
            1) {}
  Result Run(const Pass& pass, Workspace& s, const Inputs& p) const override {
    BlockState in, out;
    in.y = s.Put(p.inputs[0]);
    in.residual = pre ? s.Put(p.inputs[1]) : in.y;
    out.y = s.New(in.y.rows, in.y.cols);
    out.residual = pre ? s.New(in.y.rows, in.y.cols) : out.y;
    const Block::Saved saved = block.Forward(pass, in, out);
    Result r = {{Workspace::Get(out.y)}, {}};
    if (pre) r.outputs.push_back(Workspace::Get(out.residual));
    if (p.dout.empty()) return r;
    BlockState d;
    for (int i = 0; i < p.backwards; ++i) {
      d.y = s.Put(p.dout[0]);
      d.residual = pre ? s.Put(p.dout[1]) : d.y;
      block.Backward(pass, saved, d, p.need_dx ? d : BlockState());
    }
    r.gradients = {p.need_dx ? Workspace::Get(d.y) : Table<float>()};
    if (pre) r.gradients.push_back(Workspace::Get(d.residual));
    return r;
  }
};

Entry BlockEntry(const std::string& name, const ModelConfig& config,
    const std::vector<int32_t>& lengths, DType type) {
  auto kind = std::make_shared<Kind>();
  kind->config = config;
  kind->batch = MakeBatch(lengths, config);
  const bool pre = config.pre_norm();
  const std::string layer = pre ? "roberta_prelayernorm.encoder.layer.1." : "bert.encoder.layer.1.";
  kind->inputs = {
      {"y", Role::kActivation, RandomTable(kind->batch.padded_rows(), config.hidden, 1)}};
  if (pre)
    kind->inputs.push_back(
        {"residual", Role::kStream, RandomTable(kind->batch.padded_rows(), config.hidden, 2)});
  kind->make = [=](ParamStore* store) { return std::make_unique<BlockModule>(store, config); };
  const Entry e = EntryOf(
      absl::StrCat("Block_", pre ? "pre_" : "post_", name), type, 6, kind, RandomParams(*kind));
  return WithReference(e, kind, [=]<typename S>(const reference::Model<S>& m, const Tables<S>& in) {
    if (!pre) return Tables<S>{m.PostNormBlock(in[0], 1)};
    const Table<S> z1 = in[1] + m.SelfAttention(in[0], layer, 1);
    const Table<S> z2 =
        z1 + m.FeedForward(m.LayerNorm(z1, layer + "intermediate.LayerNorm"), layer, 1);
    return Tables<S>{m.LayerNorm(z2, "roberta_prelayernorm.LayerNorm"), z2};
  });
}

std::string NormName(const ModelConfig& config) { return config.pre_norm() ? "pre_" : "post_"; }

// As EncoderModule has it.
template <typename S>
Table<S> OnlyTargets(const reference::Model<S>& m) {
  const Table<S> y = m.Encoder();
  Table<S> targets(y.rows, y.cols);
  for (const int32_t r : m.batch.rows) {
    for (int64_t c = 0; c < y.cols; ++c) targets(r, c) = y(r, c);
  }
  return targets;
}

Entry EncoderEntry(const std::string& name, const ModelConfig& config,
    const std::vector<int32_t>& lengths, DType type) {
  const auto kind = EncoderKind(config, lengths);
  const Entry e = EntryOf(
      "Encoder_" + NormName(config) + name, type, 5 * config.layers, kind, RandomParams(*kind));
  return WithReference(e, kind, []<typename S>(const reference::Model<S>& m, const Tables<S>&) {
    return Tables<S>{OnlyTargets(m)};
  });
}

// The encoder with LoRA on every linear layer, where W and W + s B A are both parameters of the
// reference.
struct LoraEncoderModule : EncoderModule {
  LoraEncoderModule(ParamStore* store, const ModelConfig& config) : EncoderModule(store, config) {
    encoder.AddLora(store, PlanOf(0, [](const ParamKey&) { return true; }));
  }
};

Entry LoraEncoderEntry(const ModelConfig& config, const std::vector<int32_t>& lengths, DType type) {
  const auto kind = EncoderKind(config, lengths);
  kind->make = [=](ParamStore* store) {
    return std::make_unique<LoraEncoderModule>(store, config);
  };
  kind->frozen = [](const Param& p) { return !IsLora(p); };
  // Twice the encoder's roundings: each linear layer also makes x A and a sum, and so back.
  const Entry e = EntryOf(
      "LoraEncoder_" + NormName(config), type, 10 * config.layers, kind, RandomParams(*kind));
  return WithReference(e, kind, []<typename S>(reference::Model<S> m, const Tables<S>&) {
    for (auto& [name, a] : m.params) {
      if (!name.ends_with(".lora_A.weight")) continue;
      const std::string layer = name.substr(0, name.find(".lora_A"));
      const Table<S>& b = m.params.at(layer + ".lora_B.weight");
      Table<S>& w = m.params.at(layer + ".weight");
      for (int64_t r = 0; r < w.rows; ++r) {
        for (int64_t c = 0; c < w.cols; ++c) {
          for (int64_t k = 0; k < a.rows; ++k) w(r, c) += S(0.75) * b(r, k) * a(k, c);
        }
      }
    }
    return Tables<S>{OnlyTargets(m)};
  });
}

std::string HeadName(const ModelConfig& config) {
  switch (config.head) {
    case HeadKind::kNone: return "none";
    case HeadKind::kMaskedLm: return "masked_lm";
    case HeadKind::kCausalLm:
    case HeadKind::kSequenceToSequence: return "causal_lm";
    case HeadKind::kSequenceClassification:
      if (config.problem_type == kMultiLabel) return "multi_label";
      if (config.problem_type == kRegression) return "regression";
      return config.pooler ? "sequence" : "sequence_no_pooler";
    case HeadKind::kTokenTagging: return config.crf ? "tagging_crf" : "tagging";
    case HeadKind::kQuestionAnswering: return "questions";
    case HeadKind::kReplacedTokens: return "replaced_tokens";
  }
  CLOZE_CHECK(false);
}

Entry HeadEntry(const ModelConfig& config, const std::vector<int32_t>& lengths, DType type) {
  auto kind = std::make_shared<Kind>();
  kind->config = config;
  kind->batch = MakeBatch(lengths, config);
  kind->inputs = {
      {"hidden", Role::kStream, RandomTable(kind->batch.padded_rows(), config.hidden, 1)}};
  kind->make = [=](ParamStore* store) { return std::make_unique<HeadModule>(store, config); };
  Entry e = EntryOf(absl::StrCat("Head_", NormName(config), HeadName(config), "_", config.hidden),
      type, 4, kind, RandomParams(*kind));
  e.live_rows = -1;
  return WithReference(e, kind, []<typename S>(const reference::Model<S>& m, const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {m.Loss(in[0])})};
  });
}

// A sequence classifier whose labels have weights and whose targets are smoothed.
Entry WeightedHeadEntry(
    const ModelConfig& config, const std::vector<int32_t>& lengths, DType type) {
  static const std::vector<float> weights = {0.5f, 2, 1};
  constexpr float kSmoothing = 0.125f;
  auto kind = std::make_shared<Kind>();
  kind->config = config;
  kind->batch = MakeBatch(lengths, config);
  kind->inputs = {
      {"hidden", Role::kStream, RandomTable(kind->batch.padded_rows(), config.hidden, 1)}};
  kind->make = [=](ParamStore* store) {
    return std::make_unique<HeadModule>(store, config, LabelWeights{weights, kSmoothing});
  };
  Entry e = EntryOf("Head_" + NormName(config) + "weighted", type, 4, kind, RandomParams(*kind));
  e.live_rows = -1;
  return WithReference(e, kind, []<typename S>(const reference::Model<S>& m, const Tables<S>& in) {
    reference::Model<S> weighted = m;
    weighted.weights = weights;
    weighted.smoothing = kSmoothing;
    return Tables<S>{Table<S>(1, 1, {weighted.Loss(in[0])})};
  });
}

// With `averages`, the target of a row is that of the mean of it and the next one of its sequence.
Entry WholeEntry(const ModelConfig& config, const std::vector<int32_t>& lengths, DType type,
    bool averages = false) {
  const auto kind = WholeKind(config, lengths);
  Batch& batch = kind->batch;
  for (size_t i = 0; averages && i < batch.rows.size(); ++i) {
    const int32_t row = batch.rows[i];
    batch.pieces.push_back(row);
    if (row + 1 < batch.tokens() && batch.positions[row + 1] > 0) batch.pieces.push_back(row + 1);
    batch.piece_ends.push_back(static_cast<int32_t>(batch.pieces.size()));
  }
  // Attention rounds its probabilities, forward and backward, and the gradients of its scores, too.
  Entry e = EntryOf(
      absl::StrCat("Model_", NormName(config), HeadName(config), averages ? "_averages" : ""), type,
      12 * config.layers, kind, RandomParams(*kind));
  e.live_rows = -1;
  e.every_element = 4000;
  return WithReference(e, kind, []<typename S>(const reference::Model<S>& m, const Tables<S>&) {
    return Tables<S>{Table<S>(1, 1, {m.Loss(m.Encoder())})};
  });
}

std::vector<Entry> Entries() {
  std::vector<Entry> all;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all.push_back(LinearEntry(7, 5, 3, type));
    all.push_back(LinearEntry(130, 40, 24, type));
    all.push_back(LoraEntry(5, 4, 0, type));
    all.push_back(LoraEntry(40, 24, 0.25, type));
    for (const char* norm : {kPostNorm, kPreNorm}) {
      all.push_back(BlockEntry("8", ConfigOf(norm, {}, 0), {1, 2, 5}, type));
      all.push_back(BlockEntry("8_dropout", ConfigOf(norm, {}, 0.2), {1, 2, 6}, type));
      all.push_back(BlockEntry("40",
          ConfigOf(norm, {.hidden = 40, .heads = 2, .intermediate = 72}, 0.1), {1, 17, 49}, type));
      all.push_back(EncoderEntry("8", ConfigOf(norm, {}, 0), {1, 2, 6}, type));
      all.push_back(LoraEncoderEntry(ConfigOf(norm, {}, 0.1), {1, 2, 6}, type));
      ModelConfig tanh = ConfigOf(norm, {.hidden = 12, .heads = 3, .intermediate = 20}, 0.1);
      tanh.mlp.activation = ActivationKind::kGeluTanh;
      all.push_back(EncoderEntry("12_gelu_tanh", tanh, {6, 2, 3}, type));
      all.push_back(EncoderEntry("64",
          ConfigOf(norm, {.hidden = 64, .heads = 1, .layers = 1, .intermediate = 24}, 0.1),
          {130, 2, 17}, type));
      for (const HeadKind head : kHeads) {
        all.push_back(HeadEntry(ConfigOf(norm, {}, 0.2, head), {1, 2, 6}, type));
        all.push_back(HeadEntry(
            ConfigOf(norm, {.hidden = 40, .vocab = 1031}, 0.1, head), {130, 49, 17}, type));
        all.push_back(WholeEntry(ConfigOf(norm, {}, 0.1, head), {4, 1, 6}, type));
      }
      ModelConfig crf = ConfigOf(norm, {}, 0.1, HeadKind::kTokenTagging);
      crf.crf = true;
      all.push_back(HeadEntry(crf, {1, 2, 6, 4, 9}, type));
      all.push_back(WholeEntry(crf, {4, 1, 6}, type));
      all.push_back(WholeEntry(crf, {4, 1, 6}, type, /*averages=*/true));
      crf.crf = false;
      all.push_back(WholeEntry(crf, {4, 1, 6}, type, /*averages=*/true));
      ModelConfig plain = ConfigOf(norm, {}, 0.2, HeadKind::kSequenceClassification);
      plain.pooler = false;
      all.push_back(HeadEntry(plain, {1, 2, 6}, type));
      ModelConfig several = ConfigOf(norm, {}, 0.2, HeadKind::kSequenceClassification),
                  number = several;
      all.push_back(WeightedHeadEntry(several, {1, 2, 6, 3}, type));
      several.problem_type = kMultiLabel;
      number.problem_type = kRegression;
      number.labels = {"score"};
      all.push_back(HeadEntry(several, {1, 2, 6}, type));
      all.push_back(HeadEntry(number, {3, 2, 6}, type));
    }
  }
  ModelConfig relu = ConfigOf(kPostNorm, {}, 0.1);
  relu.mlp.activation = ActivationKind::kRelu;
  all.push_back(EncoderEntry("8_relu", relu, {3, 2, 7}, DType::kF32));
  return all;
}

class ModuleConformance : public testing::TestWithParam<Entry> {};

TEST_P(ModuleConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, ModuleConformance, testing::ValuesIn(Entries()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
