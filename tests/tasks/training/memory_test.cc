#include "tasks/training/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/model.h"

namespace cloze {
namespace {

using testing::HasSubstr;

ModelConfig Config(int hidden, int layers) {
  ModelConfig config;
  config.vocab = 1000, config.hidden = hidden, config.layers = layers, config.heads = 2, config.intermediate = 4 * hidden;
  config.max_positions = 64;
  return config;
}

TEST(TrainingBytes, IsAlmostAllOfTheModel) {
  const ModelConfig config = Config(32, 3);
  const Model model(config, true);
  const int64_t bytes = 16 * static_cast<int64_t>(model.params().values().size());
  EXPECT_LE(TrainingBytes(config), bytes);
  EXPECT_GT(TrainingBytes(config), bytes * 95 / 100);
}

TEST(CheckMemory, RefusesWhatCannotFit) {
  EXPECT_TRUE(CheckMemory(Config(32, 3), 0).ok());
  EXPECT_TRUE(CheckMemory(Config(32, 3), 2).ok());
  const absl::Status limited = CheckMemory(Config(32, 3), 1);
  EXPECT_EQ(ExitOf(limited), Exit::kLimit);
  EXPECT_THAT(std::string(limited.message()), HasSubstr("need 2 MB, runtime.memory_limit_mb is 1"));
  const absl::Status endless = CheckMemory(Config(16384, 1024), 0);
  EXPECT_EQ(ExitOf(endless), Exit::kLimit);
  EXPECT_THAT(std::string(endless.message()), HasSubstr("this machine has"));
}

}  // namespace
}  // namespace cloze
