// Whole models: what must hold beside the reference.
#include <gtest/gtest.h>

#include "core/ops/rows.h"
#include "tests/encoder/modules/modules.h"

namespace cloze::reference {
namespace {

// A pass of a whole model over random parameters, with what may vary.
class WholeModel : public testing::TestWithParam<const char*> {
 protected:
  ModelConfig Config(HeadKind head, float dropout = 0.1) const {
    return ConfigOf(GetParam(),
        {.hidden = 24, .heads = 2, .layers = 3, .intermediate = 40, .vocab = 50}, dropout, head);
  }
  static Result Run(std::shared_ptr<const Kind> kind, DType type = DType::kF32) {
    const auto params = RandomParams(*kind);
    Inputs p = {type, {}, {Table<float>(1, 1, {0.125f})}};
    for (const auto& [name, value] : params) p.inputs.push_back(value);
    return EntryOf("", type, 1, kind, params).run(p);
  }
};

TEST_P(WholeModel, InferIsForward) {
  for (const DType type : {DType::kF32, DType::kBf16}) {
    const auto kind = EncoderKind(Config(HeadKind::kNone), {1, 2, 17, 49, 30});
    ParamStore store;
    const EncoderModule module(&store, kind->config);
    store.Allocate(false);
    std::vector<Table<float>> values;
    const auto params = RandomParams(*kind);
    for (const auto& [name, value] : params) values.push_back(value);
    FillParams(params, values, 0, &store);
    Tables<float> results;
    for (const int threads : {1, 3}) {
      SetThreads(threads);
      Workspace a(type), b(type);
      results.push_back(Workspace::Get(
          module.encoder.Forward({store, a.matmul, a.arena, kind->batch, kSeed, false, type}).y));
      results.push_back(Workspace::Get(
          module.encoder.Infer({store, b.matmul, b.arena, kind->batch, kSeed, false, type})));
    }
    SetThreads(1);
    for (size_t i = 1; i < results.size(); ++i) ExpectSameBits("Infer", {results[0]}, {results[i]});
  }
}

TEST_P(WholeModel, PaddingRowsCountForNothing) {
  for (const HeadKind head : kHeads) {
    auto kind = WholeKind(Config(head), {5, 17, 20}), other = WholeKind(Config(head), {5, 17, 20});
    ASSERT_LT(kind->batch.tokens(), kind->batch.padded_rows());
    for (int64_t r = kind->batch.tokens(); r < kind->batch.padded_rows(); ++r) {
      other->batch.ids[r] = 7, other->batch.types[r] = 1, other->batch.positions[r] = 3,
      other->batch.row_examples[r] = 99;
    }
    const Result a = Run(kind), b = Run(other);
    ExpectSameBits("loss", a.outputs, b.outputs);
    ExpectSameBits("gradients", a.gradients, b.gradients);
  }
}

TEST_P(WholeModel, ABatchWithoutTargetsHasNoLossAndNoGradient) {
  for (const DType type : {DType::kF32, DType::kBf16}) {
    auto kind = WholeKind(Config(HeadKind::kMaskedLm), {5, 17, 20});
    kind->batch.rows.clear();
    kind->batch.targets.clear();
    const Result r = Run(kind, type);
    EXPECT_EQ(r.outputs[0].v[0], 0);
    for (const Table<float>& gradient : r.gradients) {
      for (const float x : gradient.v) ASSERT_EQ(x, 0);
    }
  }
}

// Sequences do not see each other, and dropout hangs on the example, not on the place in the batch;
// that of vectors of distances, which sequences share, hangs on the first one.
TEST_P(WholeModel, LossIsTheSumOfItsSequences) {
  for (const HeadKind head : kHeads) {
    ModelConfig config = Config(head);
    if (config.relative.span > 0) config.dropout = 0;
    const auto kind = WholeKind(config, {5, 17, 20});
    double sum = 0;
    for (int64_t s = 0; s < 3; ++s) {
      auto one = WholeKind(config, {});
      const int32_t begin = kind->batch.cu_seqlens[s], end = kind->batch.cu_seqlens[s + 1];
      one->batch.Clear();
      for (size_t i = 0; i < kind->batch.rows.size(); ++i) {
        const int32_t row = kind->batch.rows[i];
        if (row >= begin && row < end)
          one->batch.rows.push_back(row - begin),
              one->batch.targets.push_back(kind->batch.targets[i]);
      }
      one->batch.Add(
          absl::MakeSpan(kind->batch.ids).subspan(begin, end - begin), (end - begin) / 2, 1000 + s);
      one->batch.Pad();
      sum += Run(one).outputs[0].v[0];
    }
    EXPECT_NEAR(Run(kind).outputs[0].v[0], sum, 1e-5 * sum);
  }
}

// What is frozen gets no gradient, and the others' gradients have the same bits as without.
TEST_P(WholeModel, FreezingChangesNoOtherGradient) {
  const std::vector<std::string> groups = {"word_embeddings", "position_embeddings",
      "attention.self.", "query.weight key.weight value.weight", "query.bias key.bias value.bias",
      "dense.weight", "dense.bias", "LayerNorm", "layer.1.", "embeddings.", "embeddings. layer.0.",
      "embeddings. layer.0. layer.1.", "embeddings. layer.0. layer.1. attention.",
      "embeddings. layer.", "embeddings. layer. LayerNorm"};
  for (const HeadKind head : kHeads) {
    auto kind = WholeKind(Config(head), {5, 17, 20});
    const Result all = Run(kind);
    ParamStore store;
    const auto module = kind->make(&store);
    for (const std::string& group : groups) {
      kind->frozen = [&](const Param& param) {
        const std::string& name = param.name;
        for (size_t begin = 0; begin < group.size();) {
          const size_t end = std::min(group.find(' ', begin), group.size());
          if (name.find(group.substr(begin, end - begin)) != std::string::npos) return true;
          begin = end + 1;
        }
        return false;
      };
      Tables<float> expected = all.gradients;
      for (ParamId id = 0; id < store.size(); ++id) {
        if (kind->frozen(store.param(id))) expected[id] = {};
      }
      const Result r = Run(kind);
      ExpectSameBits(group + ": loss", r.outputs, all.outputs);
      ExpectSameBits(group + ": gradient", r.gradients, expected);
    }
  }
}

TEST_P(WholeModel, DropoutDependsOnSeedAndIsOffInInference) {
  const auto kind = EncoderKind(Config(HeadKind::kNone, 0.3), {9, 4});
  ParamStore store;
  const EncoderModule module(&store, kind->config);
  store.Allocate(false);
  for (ParamId id = 0; id < store.size(); ++id) InitializeParam(id, 1, 0.5, &store);
  const auto forward = [&](uint64_t seed, bool training) {
    Workspace s(DType::kF32);
    return Workspace::Get(
        module.encoder.Forward({store, s.matmul, s.arena, kind->batch, seed, training, DType::kF32})
            .y)
        .v;
  };
  EXPECT_EQ(forward(1, true), forward(1, true));
  EXPECT_NE(forward(1, true), forward(2, true));
  EXPECT_NE(forward(1, true), forward(1, false));
  EXPECT_EQ(forward(1, false), forward(2, false));
}

// The logits of this vocabulary come in chunks of 64 rows: 150 targets at once give what the three
// chunks give alone.
TEST_P(WholeModel, LogitsInChunks) {
  ModelConfig config = ConfigOf(GetParam(), {.hidden = 4, .vocab = 131072}, 0, HeadKind::kMaskedLm);
  ParamStore store;
  const HeadModule module(&store, config);
  store.Allocate(true);
  for (ParamId id = 0; id < store.size(); ++id) InitializeParam(id, 1, 0.5, &store);
  Batch batch = MakeBatch({450}, config);
  ASSERT_EQ(batch.rows.size(), 150u);
  const Table<float> hidden = RandomTable(batch.padded_rows(), 4, 1);
  const auto run = [&](const std::vector<std::pair<int, int>>& parts) {
    Workspace s(DType::kF32);
    std::fill(store.grads().begin(), store.grads().end(), 0.0f);
    const Mat all = s.Put(hidden), dall = s.arena.NewZero(all.rows, all.cols, DType::kF32);
    double loss = 0;
    for (const auto& [begin, end] : parts) {
      Batch part = batch;
      part.rows.assign(batch.rows.begin() + begin, batch.rows.begin() + end);
      part.targets.assign(batch.targets.begin() + begin, batch.targets.begin() + end);
      const Pass pass = {store, s.matmul, s.arena, part, kSeed, true, DType::kF32};
      const Mat h = TargetRows(pass).Gather(pass, all), d = pass.New(h.rows, h.cols);
      loss += LossOf(module.head, config, pass, h, 0.5f, d).loss;
      const Mat scattered = s.New(all.rows, all.cols);
      ScatterRows(d, part.rows, scattered);
      Axpby(1, scattered, 1, dall);
    }
    Tables<float> r = {Table<float>(1, 1, {static_cast<float>(loss)}), Workspace::Get(dall)};
    r.emplace_back(
        1, store.grads().size(), std::vector<float>(store.grads().begin(), store.grads().end()));
    return r;
  };
  const Tables<float> whole = run({{0, 150}}), parts = run({{0, 64}, {64, 128}, {128, 150}});
  for (size_t i = 0; i < whole.size(); ++i) {
    const Table<double> expected = Widen<double>(parts[i]);
    ExpectClose(
        absl::StrCat("chunked ", i), expected.cols, whole[i].v, expected.v, {150, 2, DType::kF32});
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, WholeModel,
    testing::Values(kPostNorm, kPreNorm, "electra", "albert", "mpnet", "deberta-v2"),
    [](const auto& info) {
      const std::string family = info.param;
      return family == kPreNorm    ? "pre"
             : family == kPostNorm ? "post"
                                   : family.substr(0, family.find('-'));
    });

}  // namespace
}  // namespace cloze::reference
