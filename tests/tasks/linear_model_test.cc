#include "tasks/linear_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/philox.h"
#include "core/base/threads.h"

namespace cloze {
namespace {

// 300 rows of three of 20 features; the class depends on the first one.
struct Sample {
  explicit Sample(int classes) : outputs(classes) {
    rows.features = 20;
    const Philox random(7, Purpose::kShuffle);
    for (int64_t r = 0; r < 300; ++r) {
      const auto draw = [&](int i) {
        return static_cast<int32_t>(random(static_cast<uint64_t>(r), 0, 0)[i] % 6);
      };
      rows.Add({{draw(0), 1.0F}, {6 + draw(1), 0.5F}, {12 + draw(2), 2.0F}});
      for (int c = 0; c < classes; ++c) targets.push_back(draw(0) % classes == c ? 1 : 0);
    }
  }
  LinearModel Fit(LinearLoss loss, double penalty) const {
    return FitLinear(
        {.rows = rows, .targets = targets, .outputs = outputs, .loss = loss, .penalty = penalty});
  }
  // The objective of `model`.
  double Value(LinearLoss loss, double penalty, const LinearModel& model) const {
    double value = 0;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const std::vector<double> scores = model.Scores(rows, r);
      double total = 0;
      for (const double s : scores) total += std::exp(s);
      for (int64_t c = 0; c < outputs; ++c) {
        const double s = scores[c], y = targets[r * outputs + c];
        if (loss == LinearLoss::kSoftmax) value -= y * (s - std::log(total));
        if (loss == LinearLoss::kLogistic) value += std::log(1 + std::exp(s)) - y * s;
        if (loss == LinearLoss::kSquared) value += 0.5 * (s - y) * (s - y);
      }
    }
    for (size_t i = 0; i + outputs < model.weights.size(); ++i)
      value += 0.5 * penalty * model.weights[i] * model.weights[i];
    return value;
  }

  int64_t outputs;
  SparseRows rows;
  std::vector<float> targets;
};

TEST(LinearModelTest, ReachesTheOptimumOfEachLoss) {
  for (const LinearLoss loss :
      {LinearLoss::kSoftmax, LinearLoss::kLogistic, LinearLoss::kSquared}) {
    const Sample sample(3);
    const LinearModel best = sample.Fit(loss, 0.5);
    const double value = sample.Value(loss, 0.5, best);
    EXPECT_LT(best.iterations, 200);
    // The objective is convex: its derivatives at the optimum are 0.
    for (size_t i = 0; i < best.weights.size(); ++i) {
      LinearModel more = best, less = best;
      more.weights[i] += 1e-3, less.weights[i] -= 1e-3;
      const double slope = (sample.Value(loss, 0.5, more) - sample.Value(loss, 0.5, less)) / 2e-3;
      EXPECT_NEAR(slope, 0, 0.02) << i;
      EXPECT_LE(value, sample.Value(loss, 0.5, more) + 1e-4);
    }
  }
}

TEST(LinearModelTest, LearnsWhatDecides) {
  const Sample sample(2);
  const LinearModel model = sample.Fit(LinearLoss::kSoftmax, 0.1);
  int right = 0;
  for (int64_t r = 0; r < sample.rows.rows(); ++r) {
    const std::vector<double> scores = model.Scores(sample.rows, r);
    right += (scores[1] > scores[0]) == (sample.targets[r * 2 + 1] > 0);
  }
  EXPECT_EQ(right, 300);
}

// The mean and the slope of points on a line, without a penalty.
TEST(LinearModelTest, SquaredLossIsLeastSquares) {
  SparseRows rows{.features = 1};
  std::vector<float> targets;
  for (int i = 0; i < 10; ++i) {
    rows.Add({{0, static_cast<float>(i)}});
    targets.push_back(3 + 2 * static_cast<float>(i));
  }
  const LinearModel model =
      FitLinear({.rows = rows, .targets = targets, .loss = LinearLoss::kSquared, .penalty = 0});
  EXPECT_NEAR(model.weights[0], 2, 1e-2);
  EXPECT_NEAR(model.weights[1], 3, 5e-2);
}

TEST(LinearModelTest, TheThreadsDoNotChangeABit) {
  const Sample sample(3);
  const int threads = Threads();
  SetThreads(1);
  const LinearModel one = sample.Fit(LinearLoss::kSoftmax, 0.1);
  SetThreads(4);
  const LinearModel four = sample.Fit(LinearLoss::kSoftmax, 0.1);
  SetThreads(threads);
  EXPECT_EQ(one.weights, four.weights);
}

TEST(LinearModelTest, EmptyRowsGiveTheFrequencies) {
  SparseRows rows{.features = 5};
  std::vector<float> targets;
  for (int i = 0; i < 8; ++i) {
    rows.Add({});
    targets.insert(targets.end(), {i < 6 ? 1.0F : 0.0F, i < 6 ? 0.0F : 1.0F});
  }
  const LinearModel model = FitLinear({.rows = rows, .targets = targets, .outputs = 2});
  const std::vector<double> scores = model.Scores(rows, 0);
  EXPECT_NEAR(scores[0] - scores[1], std::log(3), 1e-2);
}

}  // namespace
}  // namespace cloze
