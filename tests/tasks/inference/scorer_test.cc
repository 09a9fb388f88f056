#include "tasks/inference/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "encoder/families/families.h"
#include "tasks/packer.h"

namespace cloze {
namespace {

constexpr int32_t kMask = 4;

class ScorerTest : public testing::Test {
 protected:
  static ModelConfig Config() {
    ModelConfig config;
    config.family = FindFamily("bert");
    config.vocab = 50, config.hidden = 32, config.layers = 2, config.heads = 2,
    config.intermediate = 64, config.positions.count = 40;
    config.initializer.range = 0.3;  // scores that differ
    config.head = HeadKind::kMaskedLm;
    return config;
  }
  ScorerTest() {
    model_.Initialize(3);
    for (int i = 0; i < 30; ++i) {
      Query& text = texts_.emplace_back();
      text.adapter = 0;
      const int n = 2 + i * 7 % 31;
      text.ids.push_back(2);
      for (int t = 0; t < n; ++t) {
        text.ids.push_back(5 + (i * 11 + t * t) % 45);
        text.rows.push_back(t + 1);
      }
      text.ids.push_back(3);
      text.second = n + 2;
    }
  }
  std::vector<std::vector<double>> Scores(const ScoreOptions& options) {
    std::vector<std::vector<double>> scores;
    const absl::Status status =
        ScoreTexts(model_, kMask, texts_, options, [&](int64_t i, absl::Span<const double> logs) {
          EXPECT_EQ(i, scores.size()) << "not in order";
          scores.emplace_back(logs.begin(), logs.end());
        });
    EXPECT_TRUE(status.ok()) << status;
    return scores;
  }
  // log p of the token at `row` when it is masked.
  double LogOf(const Example& text, int32_t row) {
    Example masked = text;
    masked.ids[row] = kMask;
    masked.rows = {row};
    Batch batch;
    AddExample(masked, 0, &batch);
    batch.Pad();
    model_.arena().Reset();
    const Pass pass = model_.NewPass(batch, DType::kF32);
    const Mat logits = model_.head().Logits(pass, model_.backbone().Infer(pass));
    double sum = 0;
    for (int64_t c = 0; c < logits.cols; ++c) sum += std::exp(double{logits.f32(0)[c]});
    return logits.f32(0)[text.ids[row]] - std::log(sum);
  }

  Model model_{Config(), false};
  std::vector<Query> texts_;
};

TEST_F(ScorerTest, MasksOneTokenAtATime) {
  const auto scores = Scores({});
  ASSERT_EQ(scores.size(), texts_.size());
  for (size_t i = 0; i < texts_.size(); i += 5) {
    ASSERT_EQ(scores[i].size(), texts_[i].rows.size());
    for (size_t k = 0; k < scores[i].size(); ++k)
      EXPECT_NEAR(scores[i][k], LogOf(texts_[i], texts_[i].rows[k]), 1e-5) << i << " " << k;
  }
}

TEST_F(ScorerTest, DoesNotDependOnTheBatches) {
  const auto large = Scores({}), small = Scores({.batch_tokens = 1});
  ASSERT_EQ(large.size(), small.size());
  for (size_t i = 0; i < large.size(); ++i) {
    for (size_t k = 0; k < large[i].size(); ++k) EXPECT_NEAR(large[i][k], small[i][k], 1e-5);
  }
}

TEST_F(ScorerTest, ScoresPairsInOrderAndStops) {
  std::vector<TextPair> pairs(2);
  pairs[0].good = pairs[1].bad = texts_[0];
  pairs[0].bad = pairs[1].good = texts_[1];
  PairCount count;
  std::vector<double> goods;
  const auto add = [&](const TextPair&, double good, double bad) {
    count.Add(good, bad);
    goods.push_back(good);
  };
  ASSERT_TRUE(ScorePairs(model_, kMask, pairs, {}, add).ok());
  EXPECT_EQ(count.pairs, 2);
  EXPECT_EQ(count.right, 1);
  EXPECT_NE(goods[0], goods[1]);
  pairs[1] = pairs[0];
  pairs[1].bad = pairs[1].good;
  ASSERT_TRUE(ScorePairs(model_, kMask, absl::MakeSpan(pairs).subspan(1), {}, add).ok());
  EXPECT_EQ(count.ties, 1);
  EXPECT_DOUBLE_EQ(count.Accuracy(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(count.Accuracy(1), 2.0 / 3);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(ExitOf(ScorePairs(model_, kMask, pairs, {.stop = &stop}, add)), Exit::kInterrupted);
}

}  // namespace
}  // namespace cloze
