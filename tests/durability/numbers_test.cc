// Numbers that go wrong: they are seen, counted and said, they stop a run in time, and no file ever
// holds one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tasks/jobs/verify.h"
#include "tests/durability/runs.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInf = std::numeric_limits<float>::infinity();

class NumbersTest : public RunsTest {
 protected:
  // Trains with a gradient that becomes `value` in the steps that `bad` names.
  absl::StatusOr<Trainer::Summary> TrainWith(
      const LoadedSpec& spec, float value, const std::function<bool(int64_t)>& bad) {
    return Train(spec, {.on_gradients = [&](int64_t step, absl::Span<float> gradients) {
      if (bad(step)) gradients[step % gradients.size()] = value;
    }});
  }
  void ExpectSound(const std::string& run) {
    const auto verdicts = VerifyRun(Path(run));
    ASSERT_TRUE(verdicts.ok()) << verdicts.status();
    for (const Verdict& verdict : *verdicts) EXPECT_TRUE(verdict.status.ok()) << verdict.status;
  }
};

TEST(SkippedStepsTest, CountsRowsAndThousands) {
  const auto skip = [](int64_t step, TrainerState* state) {
    state->set_step(step);
    CountSkipped(state);
    return CheckSkipped(*state).ok();
  };
  TrainerState row;
  for (int64_t step = 101; step <= 109; ++step) EXPECT_TRUE(skip(step, &row)) << step;
  EXPECT_EQ(row.skipped_in_a_row(), 9);
  TrainerState gap = row;
  EXPECT_TRUE(skip(111, &gap));
  EXPECT_EQ(gap.skipped_in_a_row(), 1);
  EXPECT_FALSE(skip(110, &row));
  TrainerState spread;
  for (int64_t step = 100; step <= 1000; step += 100) EXPECT_TRUE(skip(step, &spread));
  TrainerState out = spread;
  EXPECT_TRUE(skip(1100, &out));  // 100 has left the window
  EXPECT_FALSE(skip(1099, &spread));
}

TEST_F(NumbersTest, OneIsSkippedCountedAndLogged) {
  for (const auto& [value, wrong] : {std::pair(kNan, "not finite"), std::pair(kInf, "not finite"),
           std::pair(-1e30f, "too large")}) {
    std::filesystem::remove_all(Path("run"));
    const auto summary =
        TrainWith(Spec("run", false, 6), value, [](int64_t step) { return step == 3; });
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_THAT(said_,
        HasSubstr(absl::StrCat("step 3: the gradient is ", wrong, "; step skipped (1 so far)")));
    EXPECT_TRUE(std::isfinite(summary->loss));
    ExpectSound("run");
    std::istringstream log(Read(Path("run/log.jsonl")));
    int skipped = 0;
    for (std::string line; std::getline(log, line);) {
      const auto record = nlohmann::json::parse(line);
      EXPECT_TRUE(record["smoothed_loss"].is_number()) << line;
      skipped += record.contains("skipped") && record["step"] == 3;
    }
    EXPECT_EQ(skipped, 1);
  }
}

// Adam counts the steps that it took, in its bias correction.
TEST_F(NumbersTest, ResumingBehindASkippedStepKeepsTheBits) {
  const auto train = [&](const std::string& run, int64_t until) {
    std::atomic<bool> stop = false;
    return Train(Spec(run, false, 6), {.stop = &stop,
                                          .after_step = [&](int64_t step) { stop = step == until; },
                                          .on_gradients =
                                              [&](int64_t step, absl::Span<float> gradients) {
                                                if (step == 2) gradients[0] = kNan;
                                              }});
  };
  ASSERT_TRUE(train("straight", 100).ok());
  EXPECT_EQ(ExitOf(train("pieces", 3).status()), Exit::kInterrupted);
  ASSERT_TRUE(train("pieces", 100).ok());
  EXPECT_THAT(said_, HasSubstr("resumed at step 3"));
  EXPECT_TRUE(Bits("pieces", 6) == Bits("straight", 6));
}

TEST_F(NumbersTest, TenInARowStopTheRun) {
  const LoadedSpec spec = Spec("run", false, 40);
  const auto bad = [](int64_t step) { return step > 5; };
  ExpectError(TrainWith(spec, kNan, bad).status(), Exit::kInternal,
      "step 15: loss or gradient was not finite in the last 10 steps");
  ExpectSound("run");
  // Resuming counts on: nine were saved, the tenth is one too many.
  ExpectError(TrainWith(spec, kNan, bad).status(), Exit::kInternal, "step 15: ");
  EXPECT_THAT(said_, HasSubstr("resumed at step 14"));
}

TEST_F(NumbersTest, MoreThanOnePercentOfAThousandStopTheRun) {
  const auto bad = [](int64_t step) { return step % 5 == 0; };
  ExpectError(TrainWith(Spec("run", false, 80), kNan, bad).status(), Exit::kInternal,
      "step 55: loss or gradient was not finite in the last 1 steps and in 11");
  ExpectSound("run");
}

// A second moment without memory makes the weights infinite, which no gradient tells.
TEST_F(NumbersTest, InfiniteWeightsAreNotWritten) {
  const LoadedSpec spec = Spec("run", false, 8,
      "optimizer { learning_rate: 10 beta2: 0 epsilon: 1e-30 clip_norm: 0 bias_correction: false "
      "}");
  const auto spike = [](int64_t step, absl::Span<float> gradients) {
    std::fill(gradients.begin(), gradients.end(), step == 3 ? 1e17f : 0.0f);
  };
  const absl::Status status = Train(spec, {.on_gradients = spike}).status();
  ExpectError(status, Exit::kInternal, "nothing was written");
  EXPECT_THAT(std::string(status.message()), HasSubstr("weight "));
  EXPECT_THAT(said_, HasSubstr("step-00000003"));
  EXPECT_THAT(said_, Not(HasSubstr("step-00000004")));
  ExpectSound("run");
}

}  // namespace
}  // namespace cloze
