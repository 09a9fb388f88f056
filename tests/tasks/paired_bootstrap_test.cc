#include "tasks/paired_bootstrap.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace cloze {
namespace {

// Labels 0 and 1 in turn, of which every `wrong`-th is predicted wrong.
std::vector<int32_t> Predictions(int n, int wrong) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(i % wrong == 0 ? 1 - i % 2 : i % 2);
  return ids;
}
std::vector<int32_t> Labels(int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(i % 2);
  return ids;
}

TEST(ComparePaired, CountsAndIntervalsOfAnAdvantage) {
  const auto labels = Labels(400), first = Predictions(400, 5), second = Predictions(400, 40);
  const PairedComparison c = ComparePaired(labels, first, second);
  EXPECT_EQ(c.texts, 400);
  EXPECT_EQ(c.only_first, 0);
  EXPECT_EQ(c.only_second, 70);
  EXPECT_DOUBLE_EQ(c.accuracy.value, 0.175);
  // Of n paired differences that are 0 or 1, with mean d, the standard error is sqrt(d(1-d)/n).
  const double half = 1.96 * std::sqrt(0.175 * 0.825 / 400);
  EXPECT_NEAR(c.accuracy.low, 0.175 - half, 0.006);
  EXPECT_NEAR(c.accuracy.high, 0.175 + half, 0.006);
  EXPECT_DOUBLE_EQ(c.accuracy.p, 1e-4);
  EXPECT_GT(c.macro_f1.low, 0.1);
}

TEST(ComparePaired, ChanceIsNotAnAdvantage) {
  const auto labels = Labels(200);
  std::vector<int32_t> first = labels, second = labels;
  for (int i = 0; i < 20; ++i) first[i] ^= 1, second[199 - i] ^= 1;
  second[100] ^= 1;
  const PairedComparison c = ComparePaired(labels, first, second);
  EXPECT_EQ(c.only_first, 21);
  EXPECT_EQ(c.only_second, 20);
  EXPECT_LT(c.accuracy.low, 0);
  EXPECT_GT(c.accuracy.high, 0);
  // The exact sign test of 20 against 21 gives 1.
  EXPECT_GT(c.accuracy.p, 0.75);
  const PairedComparison same = ComparePaired(labels, first, first);
  EXPECT_EQ(same.accuracy.p, 1);
  EXPECT_EQ(same.accuracy.high, 0);
}

TEST(ComparePaired, IsTheSameEachTimeAndSymmetric) {
  const auto labels = Labels(101), first = Predictions(101, 3), second = Predictions(101, 7);
  const PairedComparison a = ComparePaired(labels, first, second),
                         again = ComparePaired(labels, first, second),
                         back = ComparePaired(labels, second, first);
  EXPECT_EQ(a.accuracy.low, again.accuracy.low);
  EXPECT_EQ(a.macro_f1.p, again.macro_f1.p);
  EXPECT_NEAR(a.accuracy.low, -back.accuracy.high, 1e-12);
  EXPECT_DOUBLE_EQ(a.accuracy.p, back.accuracy.p);
  const std::vector<int32_t> one = {3};
  EXPECT_EQ(ComparePaired(one, one, one).accuracy.value, 0);
}

TEST(CompareMeans, TellsAnAdvantageFromChance) {
  std::vector<double> first, better, other;
  for (int i = 0; i < 200; ++i) {
    first.push_back(0.5 + 0.3 * std::sin(i));
    better.push_back(first.back() + 0.05 + 0.1 * std::cos(3 * i));
    other.push_back(first.back() + 0.1 * std::cos(3 * i));
  }
  const MetricDifference d = CompareMeans(first, better), chance = CompareMeans(first, other);
  EXPECT_NEAR(d.value, 0.05, 0.002);
  EXPECT_GT(d.low, 0.03);
  EXPECT_LT(d.high, 0.07);
  EXPECT_LT(d.p, 0.01);
  EXPECT_LT(chance.low, 0);
  EXPECT_GT(chance.high, 0);
  EXPECT_GT(chance.p, 0.5);
}

}  // namespace
}  // namespace cloze
