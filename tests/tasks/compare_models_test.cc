#include "tasks/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cloze {
namespace {

const Metric kAccuracy = {"accuracy", Better::kLarger}, kLoss = {"loss", Better::kSmaller};

// Expects the order of a and b, and the opposite of b and a.
void ExpectOrder(int order, const Metric& metric, const ModelScore& a, const ModelScore& b) {
  EXPECT_EQ(CompareModels(metric, a, b), order) << a.value << " " << a.loss << ", " << b.value;
  EXPECT_EQ(CompareModels(metric, b, a), -order) << a.value << " " << a.loss << ", " << b.value;
}

TEST(CompareModels, TheMetricDecidesWhateverTheLoss) {
  ExpectOrder(1, kAccuracy, {0.9, 5}, {0.8, 1});
  ExpectOrder(1, kLoss, {0.8, 0.8}, {0.9, 0.9});
  ExpectOrder(1, kLoss, {5, 5}, {NAN, 1});
  ExpectOrder(1, kAccuracy, {0, NAN}, {NAN, 1});
}

TEST(CompareModels, EqualValuesAreDecidedByTheLowerLoss) {
  ExpectOrder(1, kAccuracy, {1, 0.001}, {1, 0.6});
  ExpectOrder(1, {"mse", Better::kSmaller}, {0.5, 0.1}, {0.5, 0.2});
  ExpectOrder(1, kAccuracy, {1, 7}, {1, std::numeric_limits<double>::infinity()});
  ExpectOrder(0, kAccuracy, {1, 0.6}, {1, 0.6});
}

TEST(CompareModels, NothingDecidesWithoutALoss) {
  ExpectOrder(0, kAccuracy, {1, NAN}, {1, 0.6});
  ExpectOrder(0, kAccuracy, {1, NAN}, {1, NAN});
  ExpectOrder(0, kLoss, {NAN, NAN}, {NAN, NAN});
}

TEST(ScoreOf, FindsTheMetricAndTheLoss) {
  const ModelScore all = ScoreOf({{{"accuracy", 0.5}, {"loss", 2}}, {}}, "accuracy");
  EXPECT_EQ(all.value, 0.5);
  EXPECT_EQ(all.loss, 2);
  const ModelScore none = ScoreOf({{{"accuracy", 0.5}}, {}}, "f1");
  EXPECT_TRUE(std::isnan(none.value));
  EXPECT_TRUE(std::isnan(none.loss));
}

}  // namespace
}  // namespace cloze
