// Reports of runs that are cut short.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

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

}  // namespace
}  // namespace cloze
