// What a new model starts from.
#include "encoder/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace cloze {
namespace {

struct Moments {
  double deviation = 0, largest = 0;
};

Moments MomentsOf(const Model& model, const std::string& name) {
  const ParamId id = model.params().Find(name);
  CLOZE_CHECK(id >= 0);
  const ConstMat w = model.params().value(id);
  Moments m;
  for (int64_t i = 0; i < w.rows * w.cols; ++i) {
    m.deviation += double{w.f32()[i]} * w.f32()[i];
    m.largest = std::max(m.largest, std::fabs(double{w.f32()[i]}));
  }
  m.deviation = std::sqrt(m.deviation / (w.rows * w.cols));
  return m;
}

// Google's BERT truncates at two deviations (0.88 of the deviation is left), Hugging Face, whose heads these are, does not.
TEST(ModelTest, HeadsStartAsThoseOfHuggingFace) {
  ModelConfig config;
  config.vocab = 100, config.hidden = 64, config.layers = 1, config.heads = 2, config.intermediate = 128;
  config.head = HeadKind::kSequenceClassification;
  config.pooler = true;
  config.labels = {"a", "b"};
  Model model(config, false);
  model.Initialize(7);
  const Moments dense = MomentsOf(model, "bert.encoder.layer.0.intermediate.dense.weight");
  EXPECT_NEAR(dense.deviation, 0.0176, 5e-4);
  EXPECT_LE(dense.largest, 0.04);
  const Moments pooler = MomentsOf(model, "bert.pooler.dense.weight");
  EXPECT_NEAR(pooler.deviation, 0.02, 1e-3);
  EXPECT_GT(pooler.largest, 0.05);
  EXPECT_NEAR(MomentsOf(model, "classifier.weight").deviation, 0.02, 4e-3);
  EXPECT_EQ(MomentsOf(model, "classifier.bias").largest, 0);
}

}  // namespace
}  // namespace cloze
