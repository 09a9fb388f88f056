// Reports of runs that are cut short.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"
#include "tools/report_charts.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ReportTest : public testing::Test {
 protected:
  void Write(const std::string& run, const std::string& log) {
    std::filesystem::create_directory(runs_ + "/" + run);
    std::ofstream(runs_ + "/" + run + "/log.jsonl") << log;
    std::ofstream(runs_ + "/" + run + "/spec.textproto") << "seed: 1\n";
  }
  const std::string runs_ = TemporaryFolder();
};

TEST_F(ReportTest, LaterLinesCountAfterAKill) {
  const std::string before = "{\"step\": 100, \"smoothed_loss\": 4}\n",
                    lost = "{\"step\": 777, \"smoothed_loss\": 3}\n",
                    after = "{\"step\": 200, \"smoothed_loss\": 2}\n";
  Write("run", before + lost + after);
  const RunResult killed = RunCloze("report " + runs_ + "/run --out -");
  Write("run", before + after);
  const RunResult straight = RunCloze("report " + runs_ + "/run --out -");
  EXPECT_EQ(killed.exit, 0) << killed.err;
  EXPECT_THAT(killed.out, HasSubstr("<svg"));
  EXPECT_EQ(killed.out, straight.out);
}

TEST_F(ReportTest, LeavesOutRunsOfASweepWithoutAStep) {
  Write("rate=1", "{\"step\": 100, \"loss\": 4}\n");
  Write("rate=2", "");
  std::ofstream(runs_ + "/sweep.json") << "{}\n";
  const RunResult report = RunCloze("report " + runs_ + " --out -");
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("rate=1"));
  EXPECT_THAT(report.out, Not(HasSubstr("rate=2")));
  EXPECT_THAT(report.err, HasSubstr("left out"));
  const RunResult alone = RunCloze("report " + runs_ + "/rate=2 --out -");
  EXPECT_EQ(alone.exit, 65);
  EXPECT_THAT(alone.err, HasSubstr("no step yet"));
}

TEST_F(ReportTest, ShowsConstantCurvesAsNumbers) {
  Write("run",
      "{\"step\": 1, \"grad_norm\": 2, \"learning_rate\": 0.5}\n"
      "{\"step\": 9, \"grad_norm\": 3, \"learning_rate\": 0.5}\n");
  const RunResult report = RunCloze("report " + runs_ + "/run --out -");
  EXPECT_THAT(report.out, HasSubstr("Constant: learning rate 0.5."));
  EXPECT_THAT(report.out, Not(HasSubstr("learning rate by step")));
  EXPECT_THAT(report.out, HasSubstr("grad norm by step"));
}

TEST(ReportTicks, AreRoundAndInsideTheRangeOfTheMetric) {
  EXPECT_EQ(Ticks(0, 100, {0, INFINITY}), (std::vector<double>{0, 50, 100}));
  const std::vector<double> ticks = Ticks(0.93, 1.0, {0, 1});
  EXPECT_DOUBLE_EQ(ticks.front(), 0.92);
  EXPECT_DOUBLE_EQ(ticks.back(), 1);
  for (const auto& [low, high] : {std::pair(0.9723, 0.9724), {-0.03, 1.04}, {1e-7, 3e-5},
           {0.0, 49.62e6}, {5.0, 5.0}, {0.0, 0.0}}) {
    const std::vector<double> some = Ticks(low, high, {0, INFINITY});
    ASSERT_GE(some.size(), 2) << low;
    EXPECT_LE(some.size(), 7) << low;
    EXPECT_GE(some.front(), 0);
    EXPECT_LE(some.front(), std::max(low, 0.0) + 1e-12);
    EXPECT_GE(some.back(), high - 1e-9);
  }
  EXPECT_EQ(RangeOf("validation: macro_f1"), std::pair(0.0, 1.0));
  EXPECT_EQ(RangeOf("mcc"), std::pair(-1.0, 1.0));
}

}  // namespace
}  // namespace cloze
