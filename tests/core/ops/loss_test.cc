// Losses beyond conformance: huge logits, counts, values from PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

TEST(SoftmaxCrossEntropy, CountsRowsWhoseLargestLogitIsTheTarget) {
  Workspace s(DType::kF32);
  Table<float> logits(4, 5);
  logits(0, 2) = 1, logits(1, 4) = 3, logits(2, 0) = -1, logits(3, 1) = 2;
  const int32_t targets[] = {2, 4, 0, 3};
  EXPECT_EQ(SoftmaxCrossEntropy(s.Put(logits), targets, 1, s.arena).correct, 2);
}

TEST(SoftmaxCrossEntropy, SurvivesHugeLogits) {
  Workspace s(DType::kF32);
  const Mat logits = s.Put(Table<float>(1, 3, {1e30f, -1e30f, 0}));
  const int32_t target = 0;
  EXPECT_EQ(SoftmaxCrossEntropy(logits, &target, 1, s.arena).loss, 0);
  EXPECT_THAT(Workspace::Get(logits).v, testing::ElementsAre(0, 0, 0));
}

TEST(WeightedCrossEntropy, IsTheSoftmaxOneWithoutWeights) {
  Workspace s(DType::kF32);
  const Table<float> logits = RandomTable(9, 5, 1);
  const int32_t targets[] = {0, 1, 2, 3, 4, 0, 1, 2, 3};
  const Mat a = s.Put(logits), b = s.Put(logits);
  const LossSum plain = SoftmaxCrossEntropy(a, targets, 0.5, s.arena),
                weighted = WeightedCrossEntropy(b, targets, {}, 0.5, s.arena);
  EXPECT_NEAR(weighted.loss, plain.loss, 1e-5);
  EXPECT_EQ(weighted.correct, plain.correct);
  for (int i = 0; i < 45; ++i) EXPECT_NEAR(Workspace::Get(a).v[i], Workspace::Get(b).v[i], 1e-6);
}

// torch.nn.CrossEntropyLoss(weight=torch.tensor([1., 2., 0.5]), label_smoothing=0.1)(x, y), x and y
// as here, PyTorch 2.14.
TEST(WeightedCrossEntropy, MeanEqualsPyTorch) {
  Workspace s(DType::kF32);
  const std::vector<float> weights = {1, 2, 0.5};
  const int32_t targets[] = {2, 0};
  const Mat x = s.Put(Table<float>(2, 3, {0.5f, -1, 2, 1, 1.5f, -0.5f}));
  EXPECT_NEAR(
      WeightedCrossEntropy(x, targets, {weights, 0.1f}, 0, s.arena).loss / 1.5, 0.96729952, 1e-6);
}

TEST(BinaryCrossEntropy, OneWrongLabelMakesARowWrong) {
  Workspace s(DType::kF32);
  const float targets[] = {1, 0, 1, 0, 1, 0};
  const Mat logits = s.Put(Table<float>(3, 2, {-1, -1, 1, 1, 1, -1}));
  EXPECT_EQ(BinaryCrossEntropy(logits, targets, 0, s.arena).correct, 1);
}

TEST(BinaryCrossEntropy, SurvivesHugeLogitsAndCountsWholeRows) {
  Workspace s(DType::kF32);
  const Mat logits = s.Put(Table<float>(2, 2, {1e30f, -1e30f, 3, 2}));
  const float targets[] = {1, 0, 1, 0};
  const LossSum sum = BinaryCrossEntropy(logits, targets, 1, s.arena);
  EXPECT_NEAR(sum.loss, std::log1p(std::exp(-3.0)) + 2 + std::log1p(std::exp(-2.0)), 1e-9);
  EXPECT_EQ(sum.correct, 1);
  EXPECT_EQ(Workspace::Get(logits).v[0], 0);
  EXPECT_EQ(Workspace::Get(logits).v[1], 0);
}

}  // namespace
}  // namespace cloze::reference
