#include "tasks/run/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;

TEST(TrainerStateTest, StateComesBackWithAllItsBits) {
  const TestFolder folder;
  TrainerState state;
  state.set_step(12345678901);
  state.set_next_example(1ull << 60);
  state.set_seed(~0ull);
  state.set_spec("train { files: \"\xC3\xA9\\n\" }\n");
  state.set_best_value(0.1 + 0.2);
  state.set_last_loss(1.0 / 3);
  auto* metric = state.add_best();
  metric->set_name("accuracy");
  metric->set_value(1e-300);
  ASSERT_TRUE(WriteTrainerState(folder.path(), state).ok());
  const auto read = ReadTrainerState(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), state.SerializeAsString());
  const std::string path = JoinPath(folder.path(), kStateName);
  std::ofstream(path) << "format_version: 3 step: 5 something_new { x: 1 }";
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kMismatch);
  EXPECT_THAT(std::string(ReadTrainerState(folder.path()).status().message()),
      HasSubstr("format_version 3"));
  std::ofstream(path) << "step: 5\nseed: -1";
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kData);
  EXPECT_THAT(std::string(ReadTrainerState(folder.path()).status().message()), HasSubstr(":2:"));
  std::filesystem::remove(path);
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kNoInput);
}

TEST(TrainerStateTest, RefusesNumbersThatNoRunCanHave) {
  const TestFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(JoinPath(folder.path(), kStateName)) << "step: 20 skipped_steps: 3 " << text;
    return ReadTrainerState(folder.path()).status();
  };
  EXPECT_TRUE(read("recently_skipped: 2 recently_skipped: 20 skipped_in_a_row: 1").ok());
  for (const std::string text : {"next_example: 9223372036854775807", "next_example: -1",
           "recently_skipped: -9223372036854775808", "recently_skipped: 0", "recently_skipped: 21",
           "recently_skipped: 5 recently_skipped: 4", "recently_skipped: 5 recently_skipped: 5",
           "recently_skipped: 1 recently_skipped: 2 recently_skipped: 3 recently_skipped: 4",
           "evaluations_without_best: 9223372036854775807", "best_step: 21", "best_step: -1",
           "total_steps: 9223372036854775807", "skipped_in_a_row: 4", "seconds: nan", "seconds: -1",
           "seconds: inf", "best_value: nan"}) {
    const absl::Status status = read(text);
    EXPECT_EQ(ExitOf(status), Exit::kData) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text.substr(0, text.find(':')))) << text;
  }
}

}  // namespace
}  // namespace cloze
