#include "tasks/console/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A folder of this test's own, and a clock that is moved by hand.
class ProgressTest : public testing::Test {
 protected:
  ProgressTest() {
    screen_ = Fd(::open((directory_ + "/screen").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  }

  Progress::Options Options(int width) {
    Progress::Options options;
    options.log_path = directory_ + "/log.jsonl";
    options.total_steps = 100;
    options.log_every_steps = 10;
    options.fd = screen_.get();
    options.style = ScreenStyle{.width = width};
    options.clock = [this] { return now_; };
    return options;
  }
  void Steps(Progress* progress, int from, int to, double seconds = 0.5) {
    for (int step = from; step <= to; ++step) {
      now_ += seconds;
      progress->Step({.step = step,
          .loss = 2,
          .learning_rate = 1e-4,
          .grad_norm = 3,
          .tokens = 1000,
          .data_wait = seconds / 5});
    }
  }
  std::string Screen() { return *ReadFile(directory_ + "/screen", 1 << 20); }
  std::string Log() { return *ReadFile(directory_ + "/log.jsonl", 1 << 20); }
  std::vector<nlohmann::json> Records() {
    std::vector<nlohmann::json> records;
    for (const absl::string_view line : absl::StrSplit(Log(), '\n', absl::SkipEmpty())) {
      records.push_back(nlohmann::json::parse(std::string(line), nullptr, false));
    }
    return records;
  }

  // What a terminal shows: a carriage return goes back, later characters cover earlier ones.
  std::vector<std::string> Shown() {
    std::vector<std::string> rows = {""};
    size_t column = 0;
    for (const char c : Screen()) {
      if (c == '\n') {
        rows.push_back(""), column = 0;
      } else if (c == '\r') {
        column = 0;
      } else {
        if (rows.back().size() <= column) rows.back().resize(column + 1, ' ');
        rows.back()[column++] = c;
      }
    }
    for (std::string& row : rows) row.erase(row.find_last_not_of(' ') + 1);
    return rows;
  }

  const TestFolder own_;
  const std::string directory_ = own_.path();
  Fd screen_;
  double now_ = 1000;
};

TEST_F(ProgressTest, PlainLinesComeEveryFewSteps) {
  Progress progress(Options(0));
  Steps(&progress, 1, 25);
  EXPECT_EQ(Screen(),
      "step 10/100  loss 2.0000  2k tokens/s  ETA 45s  lr 0.0001\n"
      "step 20/100  loss 2.0000  2k tokens/s  ETA 40s  lr 0.0001\n");
}

TEST_F(ProgressTest, LargerBatchesTakeLonger) {
  Progress progress(Options(0));
  now_ += 0.5;
  progress.Step({.step = 10, .later_batches = 2, .tokens = 1000});
  EXPECT_THAT(Screen(), testing::HasSubstr("ETA 1m30s"));
}

TEST_F(ProgressTest, LastStepIsAlwaysThere) {
  Progress::Options options = Options(0);
  options.total_steps = 13;
  Progress progress(options);
  Steps(&progress, 1, 13);
  EXPECT_THAT(Screen(), HasSubstr("step 13/13"));
  EXPECT_EQ(Records().back()["step"], 13);
}

TEST_F(ProgressTest, LogHoldsOneObjectALine) {
  Progress progress(Options(0));
  Steps(&progress, 1, 20);
  const auto records = Records();
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[1]["step"], 20);
  EXPECT_EQ(records[1]["steps"], 100);
  EXPECT_EQ(records[1]["loss"], 2.0);
  EXPECT_EQ(records[1]["learning_rate"], 1e-4);
  EXPECT_EQ(records[1]["grad_norm"], 3.0);
  EXPECT_EQ(records[1]["tokens"], 20000);
  EXPECT_NEAR(records[1]["tokens_per_second"].get<double>(), 2000, 1e-6);
  EXPECT_NEAR(records[1]["seconds"].get<double>(), 10, 1e-6);
  EXPECT_NEAR(records[1]["data_wait_share"].get<double>(), 0.2, 1e-6);
  EXPECT_GT(records[1]["memory_bytes"].get<int64_t>(), 1000000) << "resident memory";
}

TEST_F(ProgressTest, EvaluationStandsInTheLogAndCostsNoSpeed) {
  Progress progress(Options(0));
  Steps(&progress, 1, 10);
  now_ += 1000;
  MetricResults results;
  results.values = {{"accuracy", 0.75}};
  progress.Evaluation(10, results, true);
  Steps(&progress, 11, 20);
  EXPECT_THAT(Screen(), HasSubstr("\nevaluation at step 10: accuracy 0.75  (best so far)\n"));
  const auto records = Records();
  ASSERT_EQ(records.size(), 3);
  EXPECT_EQ(records[1]["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(records[1]["best"], true);
  EXPECT_NEAR(records[2]["tokens_per_second"].get<double>(), 2000, 1e-6);
}

TEST_F(ProgressTest, LossIsSmoothed) {
  Progress progress(Options(0));
  for (int step = 1; step <= 10; ++step)
    progress.Step({.step = step, .loss = step % 2 ? 1.0 : 3.0, .tokens = 1});
  const auto record = Records().front();
  EXPECT_EQ(record["loss"], 3.0);
  EXPECT_NEAR(record["smoothed_loss"].get<double>(), 2, 0.1);
}

TEST_F(ProgressTest, TheLossOfASkippedStepIsNotSmoothed) {
  Progress progress(Options(0));
  progress.Step({.step = 9, .loss = 2, .tokens = 1});
  progress.Step({.step = 10, .loss = NAN, .tokens = 1, .skipped = true});
  EXPECT_EQ(Records().back()["smoothed_loss"], 2.0);
}

TEST_F(ProgressTest, NotANumberIsNull) {
  Progress progress(Options(0));
  for (int step = 1; step <= 10; ++step) progress.Step({.step = step, .loss = NAN});
  EXPECT_TRUE(Records().front()["loss"].is_null());
}

TEST_F(ProgressTest, LiveLineStaysOneLine) {
  Progress progress(Options(200));
  Steps(&progress, 1, 30);
  EXPECT_THAT(Screen(), Not(HasSubstr("\n")));
  EXPECT_EQ(
      Shown().back(), "step 30/100  loss 2.0000  2k tokens/s  ETA 35s  [###-------]  lr 0.0001");
  progress.Finish();
  EXPECT_THAT(Screen(), EndsWith("\n"));
  const std::string before = Screen();
  progress.Finish();
  EXPECT_EQ(Screen(), before);
}

TEST_F(ProgressTest, LiveLineShowsTheLossWhereThereIsRoom) {
  Progress::Options options = Options(0);
  for (const int width : {20, 40, 60, 75, 82, 200}) {
    ASSERT_EQ(::ftruncate(screen_.get(), 0), 0);
    options.style = ScreenStyle{.width = width, .blocks = true};
    Progress progress(options);
    for (int step = 1; step <= 40; ++step) {
      now_ += 1;
      progress.Step({.step = step, .loss = 5.0 - step / 10, .tokens = 1000});
    }
    const std::string last = Screen().substr(Screen().rfind('\r') + 1);
    EXPECT_EQ(last.find("[####------]") != std::string::npos, width >= 75) << width;
    EXPECT_EQ(last.find("\xE2\x96\x88\xE2\x96\x88") != std::string::npos, width >= 75) << width;
    EXPECT_TRUE(width == 0 || CountCodePoints(last) < width) << last;
  }
}

TEST_F(ProgressTest, EvaluationsAreATableOnATerminal) {
  Progress::Options options = Options(0);
  options.style = ScreenStyle{.width = 60, .colour = true};
  Progress progress(options);
  MetricResults results;
  results.values = {{"accuracy", 0.75}, {"macro_f1", 0.5}, {"a_name_without_room_on_this_one", 1}};
  progress.Evaluation(10, results, false);
  results.values[0].second = 0.8;
  progress.Evaluation(20, results, true);
  progress.MinorNote("saved runs/a");
  EXPECT_EQ(Screen(),
      "      step  accuracy  macro_f1\n"
      "        10      0.75       0.5\n"
      "\x1b[1m        20       0.8       0.5  best\x1b[0m\n");
}

TEST_F(ProgressTest, AResumedRunCountsOn) {
  Progress::Options options = Options(0);
  options.tokens = 500, options.seconds = 60;
  Progress progress(options);
  Steps(&progress, 1, 10);
  const auto record = Records().back();
  EXPECT_EQ(record["tokens"], 10500);
  EXPECT_NEAR(record["seconds"].get<double>(), 65, 1e-6);
  EXPECT_THAT(record["time"].get<std::string>(),
      testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-9:]{8}Z"));
}

TEST(History, HalvesItselfAndScales) {
  History history;
  EXPECT_EQ(history.Sparkline(16), "");
  for (int i = 0; i < 8; ++i) history.Add(i);
  EXPECT_EQ(history.Sparkline(16), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(history.Sparkline(2), "▁█");
  for (int i = 8; i < 1000; ++i) history.Add(i);
  const std::string line = history.Sparkline(16);
  EXPECT_LE(CountCodePoints(line), 16);
  EXPECT_GE(CountCodePoints(line), 8);
  EXPECT_THAT(line, EndsWith("█"));
  history.Add(NAN);
  EXPECT_EQ(Bar(0.5, 4), "[##--]");
  EXPECT_EQ(Bar(7, 2), "[##]");
}

TEST_F(ProgressTest, LiveLineIsNotDrawnTooOften) {
  Progress::Options options = Options(200);
  options.log_every_steps = 1000000;
  options.total_steps = 1000000;
  Progress progress(options);
  Steps(&progress, 1, 1000, 0.001);
  const std::string screen = Screen();
  EXPECT_LE(std::count(screen.begin(), screen.end(), '\r'), 12);
}

TEST_F(ProgressTest, NotesDoNotBreakTheLiveLine) {
  Progress progress(Options(200));
  Steps(&progress, 1, 3);
  progress.Note("saved runs/a");
  Steps(&progress, 4, 5);
  const auto rows = Shown();
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0], "saved runs/a");
  EXPECT_THAT(rows[1], StartsWith("step 5/100"));
}

TEST_F(ProgressTest, LiveLineFitsANarrowTerminal) {
  Progress progress(Options(20));
  Steps(&progress, 1, 12);
  for (const std::string& row : Shown()) EXPECT_LT(row.size(), 20);
  EXPECT_EQ(Shown().back(), "step 12/100  loss 2");
}

TEST_F(ProgressTest, ShorterLineLeavesNothingBehind) {
  Progress::Options options = Options(200);
  options.total_steps = 100000;
  Progress progress(options);
  Steps(&progress, 10, 10, 100);
  Steps(&progress, 20, 20, 0);
  progress.Step({.step = 100000, .loss = 0, .tokens = 0});
  EXPECT_THAT(Shown().back(), EndsWith("lr 0"));
}

TEST_F(ProgressTest, ControlCharactersCannotReachTheTerminal) {
  Progress progress(Options(200));
  progress.Note("evil \x1b]0;title\x07 \xC2\x9B name\r\n next \xFF caf\xC3\xA9");
  const std::string screen = Screen();
  EXPECT_EQ(screen, "evil \\u{1B}]0;title\\u{7} \\u{9B} name\\u{D}\\u{A} next \\xFF caf\xC3\xA9\n");
}

TEST_F(ProgressTest, FullDiskIsWarnedOfOnce) {
  Progress::Options options = Options(0);
  options.log_path = directory_ + "/missing/log.jsonl";
  Progress progress(options);
  Steps(&progress, 1, 40);
  const std::string screen = Screen();
  EXPECT_EQ(absl::StrSplit(screen, "warning").operator std::vector<std::string>().size(), 2);
  EXPECT_THAT(screen, HasSubstr("step 40/100"));
}

TEST_F(ProgressTest, LogThatIsNoFileIsRefused) {
  Progress::Options options = Options(0);
  options.log_path = "/dev/full";
  Progress progress(options);
  Steps(&progress, 1, 20);
  EXPECT_THAT(Screen(), HasSubstr("not a regular file"));
}

TEST_F(ProgressTest, LogThatIsALinkIsReplaced) {
  const std::string target = directory_ + "/target", log = directory_ + "/log.jsonl";
  ASSERT_TRUE(WriteNewFile(target, "mine").ok());
  for (const std::string& to : {target, directory_ + "/missing"}) {
    ::unlink(log.c_str());
    ASSERT_EQ(::symlink(to.c_str(), log.c_str()), 0);
    Progress progress(Options(0));
    Steps(&progress, 1, 20);
    EXPECT_FALSE(std::filesystem::is_symlink(log));
    EXPECT_EQ(Records().back()["step"], 20);
  }
  EXPECT_EQ(*ReadFile(target, 100), "mine");
  EXPECT_FALSE(PathExists(directory_ + "/missing"));
}

TEST_F(ProgressTest, TensorBoardGetsWhatTheLogGets) {
  Progress::Options options = Options(0);
  options.events_path = directory_ + "/" + kEventsName;
  Progress progress(options);
  Steps(&progress, 1, 20);
  MetricResults results;
  results.values = {{"accuracy", 0.75}};
  progress.Evaluation(20, results, true);
  const std::string events = *ReadFile(options.events_path, 1 << 20);
  int losses = 0;
  for (size_t at = 0; (at = events.find("train/loss", at)) != std::string::npos; ++at) ++losses;
  EXPECT_EQ(losses, 2);  // steps 10 and 20
  for (const char* tag : {"train/learning_rate", "train/tokens_per_second", "validation/accuracy"})
    EXPECT_THAT(events, HasSubstr(tag));
}

TEST_F(ProgressTest, EventsThatCannotBeWrittenAreWarnedOfOnce) {
  Progress::Options options = Options(0);
  options.events_path = directory_ + "/missing/events";
  Progress progress(options);
  Steps(&progress, 1, 40);
  EXPECT_EQ(absl::StrSplit(Screen(), "warning").operator std::vector<std::string>().size(), 2);
  EXPECT_THAT(Screen(), HasSubstr("step 40/100"));
}

TEST_F(ProgressTest, HalfALineOfAKilledRunIsEnded) {
  ASSERT_TRUE(WriteNewFile(directory_ + "/log.jsonl", "{\"step\":1}\n{\"st").ok());
  Progress progress(Options(0));
  Steps(&progress, 1, 20);
  EXPECT_THAT(Log(), StartsWith("{\"step\":1}\n{\"st\n{\"step\":10,"));
  EXPECT_EQ(Records().back()["step"], 20);
}

}  // namespace
}  // namespace cloze
