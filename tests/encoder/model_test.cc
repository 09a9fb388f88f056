// What a new model starts from.
#include "encoder/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/encoder/small_config.h"

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

// Google's BERT truncates at two deviations (0.88 of the deviation is left), Hugging Face, whose
// heads these are, does not.
TEST(ModelTest, HeadsStartAsThoseOfHuggingFace) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 100, config.hidden = 64, config.layers = 1, config.heads = 2,
  config.intermediate = 128;
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

TEST(ModelTest, KeysStartAsQueriesOnRequest) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 100, config.hidden = 64, config.layers = 2, config.heads = 2,
  config.intermediate = 128;
  config.training.query_key_start = 2;
  Model model(config, false);
  model.Initialize(7);
  for (const std::string layer : {"0", "1"}) {
    const std::string self = absl::StrCat("bert.encoder.layer.", layer, ".attention.self.");
    const ParamId query = model.params().Find(self + "query.weight"),
                  key = model.params().Find(self + "key.weight");
    const float *q = model.params().value(query).f32(), *k = model.params().value(key).f32();
    EXPECT_TRUE(std::equal(q, q + 64 * 64, k));
    EXPECT_NEAR(MomentsOf(model, self + "key.weight").deviation, 2 * 0.0176, 1e-3);
    EXPECT_NEAR(MomentsOf(model, self + "value.weight").deviation, 0.0176, 5e-4);
  }
}

// Families of RoBERTa's kind give pad tokens the row of pad_token_id, and count the others without
// them, as create_position_ids_from_input_ids of transformers does.
TEST(ModelTest, PadTokensHaveNoPositionOfTheirOwn) {
  const auto hidden = [](const Model& model, const Batch& batch) {
    auto& own = const_cast<Model&>(model);
    own.arena().Reset();
    const Mat y = model.backbone().Infer(own.NewPass(batch, DType::kF32, false, 0));
    return std::vector<float>(y.f32(), y.f32() + 5 * y.cols);
  };
  for (const char* family : {"roberta", "xlm-roberta", "camembert", "roberta-prelayernorm"}) {
    ModelConfig config = SmallConfig(HeadKind::kNone, family);
    config.SetPad(1);
    Model model(config, false);
    model.Initialize(7);
    config.pad_id = 39;  // a token like others
    Model plain(config, false);
    plain.Initialize(7);
    const ParamId table = FindWeight(model.params(), Role::kPositionEmbeddings, -1);
    std::copy_n(model.params().values().data(), model.params().values().size(),
        plain.params().values().data());
    // Rows 2 3 1 4 in place of 2 3 4 5.
    const Mat from = model.params().value(table), to = plain.params().value(table);
    std::copy_n(from.f32(1), from.cols, to.f32(4));
    std::copy_n(from.f32(4), from.cols, to.f32(5));
    std::copy_n(from.f32(5), from.cols, to.f32(6));
    plain.params().Changed();
    Batch batch;
    for (int row = 0; row < 5; ++row) batch.rows.push_back(row);
    batch.Add(std::vector<int32_t>{2, 5, 1, 7, 3}, 5, 1);
    batch.Pad();
    EXPECT_EQ(hidden(model, batch), hidden(plain, batch)) << family;
  }
}

}  // namespace
}  // namespace cloze
