#include "tasks/run/state.h"

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
  std::ofstream(path) << "format_version: 2 step: 5 something_new { x: 1 }";
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kMismatch);
  EXPECT_THAT(std::string(ReadTrainerState(folder.path()).status().message()),
      HasSubstr("format_version 2"));
  std::ofstream(path) << "step: 5\nseed: -1";
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kData);
  EXPECT_THAT(std::string(ReadTrainerState(folder.path()).status().message()), HasSubstr(":2:"));
  std::filesystem::remove(path);
  EXPECT_EQ(ExitOf(ReadTrainerState(folder.path()).status()), Exit::kNoInput);
}

}  // namespace
}  // namespace cloze
