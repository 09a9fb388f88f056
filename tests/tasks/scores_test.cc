#include "tasks/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/json.h"

namespace cloze {
namespace {

// Uniform numbers in [0, 1), in steps of 1 / levels so that there are ties.
std::vector<double> Uniform(int n, int levels, uint64_t seed) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i)
    values.push_back(double((seed * 7919 + i * 104729 + i * i * 31) % levels) / levels);
  return values;
}

// Counts all pairs.
double PairCount(const std::vector<double>& scores, const std::vector<bool>& positive) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (!positive[i] || positive[j]) continue;
      ++pairs;
      sum += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return sum / pairs;
}

// Scores of a model whose weights have become NaN.
TEST(Scores, OfNumbersThatAreNotFinite) {
  EXPECT_TRUE(std::isnan(MeanRanks({1, NAN, 2})[0]));
  EXPECT_TRUE(std::isnan(AreaUnderCurve({1, NAN, 2}, {true, false, true})));
  EXPECT_EQ(BestThreshold({0.1f, NAN}, {true, false}, 0.5f), 0.5f);
  Calibration calibration;
  calibration.Add(NAN, true);
  EXPECT_TRUE(std::isnan(calibration.Error()));
}

// The example of sklearn.metrics.roc_auc_score, and one tie by hand.
TEST(AreaUnderCurve, AsByHand) {
  EXPECT_DOUBLE_EQ(AreaUnderCurve({0.1, 0.4, 0.35, 0.8}, {false, false, true, true}), 0.75);
  EXPECT_DOUBLE_EQ(AreaUnderCurve({0.5, 0.5, 0.2}, {true, false, false}), 0.75);
  EXPECT_DOUBLE_EQ(AreaUnderCurve({2, 1}, {false, true}), 0);
  EXPECT_TRUE(std::isnan(AreaUnderCurve({1, 2}, {true, true})));
  EXPECT_TRUE(std::isnan(AreaUnderCurve({}, {})));
}

TEST(AreaUnderCurve, IsTheShareOfOrderedPairs) {
  for (const int levels : {3, 17, 100003}) {
    const std::vector<double> scores = Uniform(211, levels, levels), coin = Uniform(211, 1009, 5);
    std::vector<bool> positive;
    for (size_t i = 0; i < coin.size(); ++i) positive.push_back(coin[i] + scores[i] / 3 > 0.7);
    EXPECT_NEAR(AreaUnderCurve(scores, positive), PairCount(scores, positive), 1e-12);
  }
}

// Three outcomes in two bins: (2 |0.5 - 0.95| + |1 - 0.5|) / 3.
TEST(Calibration, AsByHand) {
  Calibration calibration;
  EXPECT_TRUE(std::isnan(calibration.Error()));
  calibration.Add(0.95, true);
  calibration.Add(0.95, false);
  calibration.Add(0.5, true);
  EXPECT_NEAR(calibration.Error(), (2 * 0.45 + 0.5) / 3, 1e-12);
  const Json bins = Json::parse(calibration.ToJson());
  ASSERT_EQ(bins.size(), 2);
  EXPECT_NEAR(bins[0]["from"].get<double>(), 7 / 15.0, 1e-12);
  EXPECT_EQ(bins[1]["count"], 2);
  EXPECT_EQ(bins[1]["share"], 0.5);
  calibration.Add(1, true);  // in the last bin
  EXPECT_EQ(Json::parse(calibration.ToJson()).size(), 2);
}

double NegativeLogLikelihood(const std::vector<float>& logits, int labels,
    const std::vector<int32_t>& targets, double temperature) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    double total = 0;
    for (int l = 0; l < labels; ++l) total += std::exp(logits[i * labels + l] / temperature);
    sum += std::log(total) - logits[i * labels + targets[i]] / temperature;
  }
  return sum;
}

TEST(FitTemperature, HasTheSmallestLossOfAll) {
  const std::vector<double> noise = Uniform(600, 100003, 1), coin = Uniform(200, 1009, 3);
  std::vector<float> logits;
  std::vector<int32_t> targets;
  for (int i = 0; i < 200; ++i) {
    for (int l = 0; l < 3; ++l) logits.push_back(8 * noise[3 * i + l]);
    const auto* row = logits.data() + 3 * i;
    targets.push_back(coin[i] < 0.7 ? std::max_element(row, row + 3) - row : i % 3);
  }
  const float fitted = FitTemperature(logits, 3, targets);
  EXPECT_GT(fitted, 1.2);
  const double least = NegativeLogLikelihood(logits, 3, targets, fitted);
  for (double t = 0.2; t < 20; t *= 1.01)
    EXPECT_GE(NegativeLogLikelihood(logits, 3, targets, t), least - 1e-6) << t;
  targets.push_back(3);  // a label that the model does not have
  logits.insert(logits.end(), {9, 0, 0});
  EXPECT_EQ(FitTemperature(logits, 3, targets), fitted);
  EXPECT_EQ(FitTemperature({}, 3, {}), 1);
}

// One logit of 2 that is right three times of four: T = 2 / ln 3. Always right: the lower limit.
TEST(FitTemperature, OfSeveralLabels) {
  EXPECT_NEAR(FitTemperature({2, 2, 2, 2}, {1, 1, 0, 1}), 2 / std::log(3), 1e-5);
  EXPECT_NEAR(FitTemperature({2, 2}, {1, 1}), 0.2, 1e-6);
}

TEST(BestThreshold, IsHalfwayAndHasTheBestF1) {
  EXPECT_FLOAT_EQ(BestThreshold({0.1, 0.3, 0.2, 0.05}, {false, true, true, false}, 0.5), 0.15);
  EXPECT_FLOAT_EQ(BestThreshold({0.9, 0.8}, {false, false}, 0.4), 0.4);
  EXPECT_FLOAT_EQ(BestThreshold({0.4, 0.4}, {true, false}, 0.5), 0.2);  // equal ones stay together
  const std::vector<double> scores = Uniform(97, 41, 2), coin = Uniform(97, 1009, 7);
  const std::vector<float> probabilities(scores.begin(), scores.end());
  std::vector<bool> positive;
  for (size_t i = 0; i < coin.size(); ++i) positive.push_back(coin[i] < 0.2 + scores[i] / 2);
  const auto f1 = [&](double threshold) {
    double right = 0, all = 0;
    for (size_t i = 0; i < positive.size(); ++i) {
      const bool chosen = probabilities[i] >= threshold;
      right += chosen && positive[i];
      all += chosen + positive[i];
    }
    return 2 * right / all;
  };
  const double best = f1(BestThreshold(probabilities, positive, 0.5));
  for (int i = 0; i <= 200; ++i) EXPECT_LE(f1(i / 200.0), best + 1e-12) << i;
}

}  // namespace
}  // namespace cloze
