#include "tasks/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cloze {
namespace {

ScheduleSpec Spec(ScheduleSpec::Shape shape, int64_t warmup_steps) {
  ScheduleSpec spec;
  spec.set_shape(shape);
  spec.set_warmup_share(0);
  spec.set_warmup_steps(warmup_steps);
  return spec;
}

// The rates of 12 steps that PyTorch was given.
TEST(LearningRate, EqualsTheReference) {
  const double expected[] = {
      0.0025, 0.005, 0.0075, 0.01, 0.01, 0.00875, 0.0075, 0.00625, 0.005, 0.00375, 0.0025, 0.00125};
  for (int step = 0; step < 12; ++step) {
    EXPECT_NEAR(LearningRate(Spec(ScheduleSpec::LINEAR, 4), 0.01, step, 12), expected[step], 1e-12)
        << step;
  }
}

TEST(LearningRate, EqualsTheReferenceFile) {
  std::ifstream file(CLOZE_SOURCE_DIR "/tests/golden/masked_lm/training.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  const ScheduleSpec spec = Spec(ScheduleSpec::LINEAR, json["warmup_steps"]);
  const int64_t total = json["steps"].size();
  for (const auto& step : json["steps"]) {
    EXPECT_NEAR(LearningRate(spec, json["peak_learning_rate"], step["step"], total),
        step["learning_rate"], 1e-12);
  }
}

TEST(LearningRate, CosineFallsFromPeakToZero) {
  const ScheduleSpec spec = Spec(ScheduleSpec::COSINE, 10);
  EXPECT_NEAR(LearningRate(spec, 1, 9, 110), 1, 1e-12);
  EXPECT_NEAR(LearningRate(spec, 1, 10, 110), 1, 1e-12);
  EXPECT_NEAR(LearningRate(spec, 1, 35, 110), 0.5 * (1 + std::cos(std::acos(-1.0) / 4)), 1e-12);
  EXPECT_NEAR(LearningRate(spec, 1, 60, 110), 0.5, 1e-12);
  EXPECT_NEAR(LearningRate(spec, 1, 110, 110), 0, 1e-12);
  for (int step = 10; step < 109; ++step)
    EXPECT_GT(LearningRate(spec, 1, step, 110), LearningRate(spec, 1, step + 1, 110));
}

TEST(LearningRate, ConstantStays) {
  const ScheduleSpec spec = Spec(ScheduleSpec::CONSTANT, 2);
  EXPECT_EQ(LearningRate(spec, 4, 0, 10), 2);
  for (const int64_t step : {1, 2, 9, 10, 1000}) EXPECT_EQ(LearningRate(spec, 4, step, 10), 4);
}

TEST(LearningRate, TrapezoidStaysAndThenFallsAsOneMinusRoot) {
  ScheduleSpec spec = Spec(ScheduleSpec::TRAPEZOID, 10);
  spec.set_decay_share(0.4);
  EXPECT_EQ(LearningRate(spec, 2, 4, 100), 1);
  for (const int64_t step : {9, 10, 58, 59}) EXPECT_EQ(LearningRate(spec, 2, step, 100), 2);
  EXPECT_NEAR(LearningRate(spec, 2, 70, 100), 2 * (1 - std::sqrt(0.25)), 1e-7);
  EXPECT_NEAR(LearningRate(spec, 2, 96, 100), 2 * (1 - std::sqrt(0.9)), 1e-7);
  EXPECT_EQ(LearningRate(spec, 2, 100, 100), 0);
  spec.set_decay_share(1);  // longer than what the warmup leaves
  EXPECT_EQ(LearningRate(spec, 2, 10, 100), 2);
  EXPECT_NEAR(LearningRate(spec, 2, 55, 100), 2 * (1 - std::sqrt(0.5)), 1e-7);
  spec.set_decay_share(0);
  EXPECT_EQ(LearningRate(spec, 2, 99, 100), 2);
  ScheduleSpec timed;
  timed.set_shape(ScheduleSpec::TRAPEZOID);
  timed.set_warmup_share(0.1);
  EXPECT_EQ(TimedLearningRate(timed, 2, 0.79), 2);
  EXPECT_NEAR(TimedLearningRate(timed, 2, 0.85), 2 * (1 - std::sqrt(0.25)), 1e-6);
  EXPECT_EQ(TimedLearningRate(timed, 2, 1), 0);
}

TEST(LearningRate, PastTheEndIsZero) {
  EXPECT_EQ(LearningRate(Spec(ScheduleSpec::LINEAR, 1), 1, 12, 10), 0);
  EXPECT_NEAR(LearningRate(Spec(ScheduleSpec::COSINE, 1), 1, 12, 10), 0, 1e-12);
}

TEST(LearningRate, WithoutWarmupBeginsAtThePeak) {
  EXPECT_EQ(LearningRate(Spec(ScheduleSpec::LINEAR, 0), 1, 0, 10), 1);
  EXPECT_NEAR(LearningRate(Spec(ScheduleSpec::LINEAR, 0), 1, 9, 10), 0.1, 1e-12);
}

TEST(LearningRate, WarmupLongerThanTheRunOnlyRises) {
  const ScheduleSpec spec = Spec(ScheduleSpec::LINEAR, 100);
  EXPECT_EQ(WarmupSteps(spec, 10), 10);
  EXPECT_EQ(LearningRate(spec, 1, 9, 10), 1);
}

TEST(TimedLearningRate, RisesAndReachesZeroAtTheEnd) {
  ScheduleSpec spec;  // linear, a tenth of warm-up
  EXPECT_EQ(TimedLearningRate(spec, 2, 0), 0);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 0.05), 1, 1e-6);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 0.1), 2, 1e-6);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 0.55), 1, 1e-6);
  EXPECT_EQ(TimedLearningRate(spec, 2, 1), 0);
  spec.set_shape(ScheduleSpec::COSINE);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 0.55), 1, 1e-6);
  spec.set_warmup_share(1);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 0.5), 1, 1e-6);
  EXPECT_NEAR(TimedLearningRate(spec, 2, 1), 2, 1e-6);
}

TEST(RunClock, CountsStepsOrTime) {
  ScheduleSpec spec;
  double now = 100;
  const auto clock = [&] { return now; };
  RunClock steps(spec, 20, clock);
  steps.Resume(5);
  steps.Start(5);
  EXPECT_EQ(steps.Done(5), 0.25);
  EXPECT_FALSE(steps.Done(19) >= 1);
  EXPECT_TRUE(steps.Done(20) >= 1);
  EXPECT_EQ(steps.Rate(1, 1), 1);
  EXPECT_EQ(steps.Describe(3), "step 3 of 20");
  now += 7;
  EXPECT_EQ(steps.Seconds(), 12);

  spec.set_time_budget_minutes(2);
  RunClock timed(spec, 20, clock);
  EXPECT_EQ(timed.total_steps(), 0);
  timed.Resume(30);
  timed.Start(0);
  EXPECT_EQ(timed.Done(1000), 0.25);
  EXPECT_EQ(timed.SecondsLeft(), 90);
  now += 89;
  EXPECT_FALSE(timed.Done(1000) >= 1);
  now += 1;
  EXPECT_TRUE(timed.Done(0) >= 1);
  EXPECT_EQ(timed.SecondsLeft(), 0);
  EXPECT_EQ(timed.Rate(1, 7), 0);
  EXPECT_EQ(timed.Describe(3), "step 3");
}

TEST(WarmupSteps, TakesShareOrSteps) {
  ScheduleSpec spec;
  EXPECT_EQ(WarmupSteps(spec, 1000), 100);  // the default share, 0.1
  spec.set_warmup_share(0.06);
  EXPECT_EQ(WarmupSteps(spec, 1000), 60);
  spec.set_warmup_steps(7);
  EXPECT_EQ(WarmupSteps(spec, 1000), 7);
}

TEST(TotalSteps, TakesStepsOrEpochs) {
  ScheduleSpec spec;
  EXPECT_EQ(TotalSteps(spec, 100), 300);
  spec.set_epochs(0.1f);
  EXPECT_EQ(TotalSteps(spec, 10), 1) << "0.1f is a little more than 0.1";
  EXPECT_EQ(TotalSteps(spec, 11), 2);
  EXPECT_EQ(TotalSteps(spec, 0), 1);
  spec.set_steps(5);
  EXPECT_EQ(TotalSteps(spec, 100), 5);
}

}  // namespace
}  // namespace cloze
