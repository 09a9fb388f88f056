#include "tasks/training/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/model.h"
#include "encoder/trainable.h"

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

TEST(TrainingBytes, CountsOnlyWhatLearns) {
  const ModelConfig config = Config(32, 3);
  TrainableSpec head, last, lora;
  head.set_head_only(true);
  last.set_last_layers(1);
  lora.mutable_lora()->set_rank(4);
  for (const TrainableSpec& trainable : {head, last, lora}) {
    const Model model(config, true, trainable);
    const ParamCount count = CountParams(model.params());
    EXPECT_LE(TrainingBytes(config, trainable), 4 * (count.all + 3 * count.trained));
    EXPECT_GT(TrainingBytes(config, trainable), 4 * (count.all + 3 * count.trained) * 9 / 10);
    EXPECT_LT(TrainingBytes(config, trainable), TrainingBytes(config));
  }
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
