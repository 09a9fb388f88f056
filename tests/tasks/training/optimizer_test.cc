// The optimizer over the parameters of a whole model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/families/families.h"
#include "tasks/training/step.h"

namespace cloze {
namespace {

ModelConfig Config(HeadKind head) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 30, config.hidden = 8, config.layers = 2, config.heads = 2,
  config.intermediate = 16, config.max_positions = 16;
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
    EXPECT_NEAR(optimizer.m()[0], 0.1f * std::min(norm, 1.0f), 1e-6) << norm;
  }
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

}  // namespace
}  // namespace cloze
