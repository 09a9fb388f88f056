// The optimizer over the parameters of a whole model.
#include "tasks/update/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/families/families.h"
#include "encoder/model.h"
#include "tests/reference/reference.h"

namespace cloze {
namespace {

using reference::Table;

ModelConfig Config(HeadKind head) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 30, config.hidden = 8, config.layers = 2, config.heads = 2,
  config.intermediate = 16, config.positions.count = 16;
  config.head = head;
  config.labels = {"a", "b"};
  return config;
}

TEST(OptimizerTest, WeightDecaySparesBiasesAndNorms) {
  ModelConfig config = Config(HeadKind::kSequenceClassification);
  config.pooler = true;
  Model model(config, true);
  const absl::Span<float> values = model.params().values();
  std::fill(values.begin(), values.end(), 1.0f);
  OptimizerSpec spec;
  spec.set_weight_decay(0.5f);
  Optimizer optimizer(&model.params(), spec);
  optimizer.Step(0.25, 0);  // without a gradient, only decay moves a weight
  int decayed = 0, spared = 0;
  for (ParamId id = 0; id < model.params().size(); ++id) {
    const Param& param = model.params().param(id);
    const bool spare = param.name.find("bias") != std::string::npos ||
                       param.name.find("LayerNorm") != std::string::npos;
    ++(spare ? spared : decayed);
    for (int64_t i = 0; i < param.size(); ++i)
      ASSERT_EQ(values[param.offset + i], spare ? 1 : 1 - 0.25f * 0.5f) << param.name;
  }
  EXPECT_GT(decayed, 15);
  EXPECT_GT(spared, 20);
}

TEST(OptimizerTest, OnlyLargeGradientsAreClipped) {
  for (const float norm : {0.01f, 100.0f}) {
    Model model(Config(HeadKind::kTokenTagging), true);
    Optimizer optimizer(&model.params(), OptimizerSpec());  // clips at norm 1
    model.params().grads()[0] = norm;
    EXPECT_NEAR(optimizer.GradNorm(), norm, 1e-6 * norm);
    optimizer.Step(0.001, norm);
    EXPECT_NEAR(optimizer.arrays()[0].data[0], 0.1f * std::min(norm, 1.0f), 1e-6) << norm;
  }
}

// As StableAdamW: a tensor's own rate also scales its decay.
TEST(OptimizerTest, ClipsTheUpdatesOfEachTensor) {
  OptimizerSpec spec;
  spec.set_weight_decay(0.1f);
  spec.set_beta2(0.9f);
  spec.set_epsilon(1e-6f);
  spec.set_clip_norm(0);
  spec.set_clip_updates(true);
  Model model(Config(HeadKind::kTokenTagging), true);
  const absl::Span<float> values = model.params().values(), gradients = model.params().grads();
  AdamW a = {.rate = 0.01f,
      .beta1 = spec.beta1(),
      .beta2 = 0.9f,
      .epsilon = 1e-6f,
      .decay = 0,
      .grad_scale = 1,
      .bias_correction = true,
      .step = 0};
  const ParamId jumps = FindWeight(model.params(), Role::kIntermediate, 1),
                calm = FindWeight(model.params(), Role::kOutput, 1);
  for (const ParamId id : {jumps, calm}) {
    const Param& param = model.params().param(id);
    std::vector<double> expected(param.size(), 1.0), m(param.size()), v(param.size());
    std::fill(values.begin(), values.end(), 1.0f);
    Optimizer optimizer(&model.params(), spec);
    double clipped = 1;
    for (a.step = 1; a.step <= 4; ++a.step) {
      std::vector<double> g(param.size());
      for (int64_t i = 0; i < param.size(); ++i) {
        g[i] = (i % 3 - 1.5) * (a.step == 4 && id == jumps ? 100 : 1);
        gradients[param.grad_offset + i] = static_cast<float>(g[i]);
      }
      const double rms = std::sqrt(reference::SumUpdateRatios(a, g, v) / param.size());
      clipped = std::max(rms, 1.0);
      AdamW own = a;
      own.rate = static_cast<float>(a.rate / clipped);
      own.decay = spec.weight_decay();
      reference::AdamWStep(own, &expected, g, &m, &v);
      optimizer.Step(a.rate, optimizer.GradNorm());
    }
    EXPECT_EQ(clipped > 1.5, id == jumps);
    for (int64_t i = 0; i < param.size(); ++i)
      ASSERT_NEAR(values[param.offset + i], expected[i], 2e-6) << param.name;
  }
}

TEST(OptimizerTest, ATinyEpsilonLeavesUnusedParametersFinite) {
  OptimizerSpec spec;
  spec.set_epsilon(1e-24f);
  spec.set_clip_updates(true);
  Model model(Config(HeadKind::kTokenTagging), true);
  Optimizer optimizer(&model.params(), spec);
  std::fill(model.params().grads().begin(), model.params().grads().end(), 0.0f);
  optimizer.Step(0.01f, 0);
  for (const float x : model.params().values()) ASSERT_TRUE(std::isfinite(x));
}

TEST(OptimizerTest, ScoresOfACrfLearnFiftyTimesAsFast) {
  ModelConfig config = Config(HeadKind::kTokenTagging);
  config.crf = true;
  Model model(config, true);
  Optimizer optimizer(&model.params(), OptimizerSpec());
  const absl::Span<float> values = model.params().values(), gradients = model.params().grads();
  std::fill(gradients.begin(), gradients.end(), 1.0f);
  optimizer.Step(0.001, 0);  // Adam's first step is the rate
  for (ParamId id = 0; id < model.params().size(); ++id) {
    const Param& param = model.params().param(id);
    const float rate = param.name.find("crf.") == 0 ? 0.05f : 0.001f;
    EXPECT_NEAR(values[param.offset], -rate, 1e-6) << param.name;
  }
}

// Against double, in two steps; all other parameters move as with AdamW alone.
TEST(OptimizerTest, MuonMovesTheMatricesOfLinearLayers) {
  OptimizerSpec adamw;
  adamw.set_weight_decay(0.1f);
  OptimizerSpec muon = adamw;
  muon.set_muon_rate(3);
  ModelConfig config = Config(HeadKind::kSequenceClassification);
  config.pooler = true;
  Model model(config, true), other(config, true);
  model.Initialize(1), other.Initialize(1);
  ParamStore &params = model.params(), &others = other.params();
  const std::vector<float> start(params.values().begin(), params.values().end());
  Optimizer optimizer(&params, muon), plain(&others, adamw);
  const auto gradient = [](int64_t i, int step) { return std::sin(i * i + 5.0f * step); };
  double scales[2];  // by clipping at norm 1
  for (int step = 0; step < 2; ++step) {
    for (int64_t i = 0; i < std::ssize(params.grads()); ++i)
      params.grads()[i] = others.grads()[i] = gradient(i, step);
    const double norm = optimizer.GradNorm();
    scales[step] = 1 / norm;
    optimizer.Step(0.01, norm);
    plain.Step(0.01, norm);
  }
  int taken = 0;
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& p = params.param(id);
    const bool linear = p.rows > 1 && (p.name.find("encoder.layer") != std::string::npos ||
                                          p.role == Role::kPooler);
    std::vector<double> expected(start.begin() + p.offset, start.begin() + p.offset + p.size());
    Table<double> m(p.rows, p.cols), u(p.rows, p.cols);
    for (int step = 0; step < 2; ++step) {
      for (int64_t i = 0; i < p.size(); ++i) {
        const double g = 0.1 * gradient(p.grad_offset + i, step) * scales[step];
        m.v[i] = 0.9 * m.v[i] + g;
        u.v[i] = 0.9 * m.v[i] + g;
      }
      const Table<double> direction = reference::Orthogonalized(u);
      const double size = 0.2 * std::sqrt(std::max(p.rows, p.cols));
      for (int64_t i = 0; i < p.size(); ++i)
        expected[i] -= 0.01 * 3 * (0.1 * expected[i] + size * direction.v[i]);
    }
    taken += linear;
    for (int64_t i = 0; i < p.size(); ++i) {
      ASSERT_EQ(params.grads()[p.grad_offset + i], 0) << p.name;
      ASSERT_NEAR(
          params.values()[p.offset + i], linear ? expected[i] : others.values()[p.offset + i], 2e-6)
          << p.name;
    }
  }
  EXPECT_EQ(taken, 2 * 6 + 1);
}

// ModernBERT's query, key and value are three matrices in one.
TEST(OptimizerTest, MuonDividesQueryKeyAndValue) {
  OptimizerSpec spec;
  spec.set_muon_rate(2);
  const auto train = [&](int params, int matrices) {
    ParamStore store;
    for (int i = 0; i < params; ++i) {
      Param& param = store.Edit(store.AddMatrix({.name = absl::StrCat("w", i)}, 48 / params, 4));
      param.matmul_only = true;
      param.matrices = matrices;
    }
    store.Allocate(true);
    Optimizer optimizer(&store, spec);
    for (int64_t i = 0; i < 192; ++i) store.grads()[i] = std::sin(i * i);
    optimizer.Step(0.01, optimizer.GradNorm());
    return std::vector<float>(store.values().begin(), store.values().end());
  };
  EXPECT_EQ(train(1, 3), train(3, 1));
  EXPECT_NE(train(1, 1), train(3, 1));
}

}  // namespace
}  // namespace cloze
