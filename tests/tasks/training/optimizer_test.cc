// The optimizer over the parameters of a whole model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/families/families.h"
#include "tasks/training/step.h"

namespace cloze {
namespace {

TEST(OptimizerTest, WeightDecaySparesBiasesAndNorms) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 30, config.hidden = 8, config.layers = 2, config.heads = 2,
  config.intermediate = 16, config.max_positions = 16;
  config.head = HeadKind::kSequenceClassification;
  config.pooler = true;
  config.labels = {"a", "b"};
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

}  // namespace
}  // namespace cloze
