// The plan of a run's memory, and the micro-batch that fits.
#include "tasks/training/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/threads.h"
#include "core/ops/orthogonalize.h"
#include "encoder/families/families.h"
#include "tasks/update/optimizer.h"
#include "tests/sanitized.h"

namespace cloze {
namespace {

using testing::HasSubstr;

constexpr int64_t kMegabyte = 1000000;

ModelConfig Config(int hidden, int layers) {
  ModelConfig config;
  config.family = FindFamily("bert");
  config.vocab = 1000, config.hidden = hidden, config.layers = layers, config.heads = 2,
  config.intermediate = 4 * hidden;
  config.positions.count = 512, config.head = HeadKind::kMaskedLm;
  return config;
}

LoadedSpec Spec(int64_t limit_mb = 0, int64_t micro_tokens = 0, int64_t tokens = 8192) {
  LoadedSpec loaded;
  loaded.path = "spec";
  loaded.spec.mutable_masked_lm()->set_max_tokens(128);
  loaded.spec.mutable_batch()->set_tokens(tokens);
  if (micro_tokens > 0) loaded.spec.mutable_batch()->set_micro_tokens(micro_tokens);
  loaded.spec.mutable_runtime()->set_memory_limit_mb(limit_mb);
  return loaded;
}

MemoryPlan PlanOf(const LoadedSpec& loaded, const ModelConfig& config = Config(64, 3)) {
  return MemoryPlan(loaded.spec, config, DType::kF32, {.mean_length = 100});
}

absl::StatusOr<int64_t> Choose(
    const LoadedSpec& loaded, std::string* note, const ModelConfig& config = Config(64, 3)) {
  return ChooseMicroTokens(loaded, PlanOf(loaded, config), note);
}

TEST(MemoryPlan, CountsWeightsAndWhatLearns) {
  LoadedSpec whole = Spec(), head = Spec(), last = Spec(), average = Spec();
  head.spec.mutable_trainable()->set_head_only(true);
  last.spec.mutable_trainable()->set_last_layers(1);
  average.spec.mutable_optimizer()->set_ema_decay(0.9f);
  for (const LoadedSpec& loaded : {whole, head, last, average}) {
    const Model model(Config(64, 3), true, loaded.spec.trainable());
    Optimizer optimizer(const_cast<ParamStore*>(&model.params()), loaded.spec.optimizer());
    const TrainingNeed need = PlanOf(loaded).Need(8192);
    EXPECT_EQ(need.weights, 4 * static_cast<int64_t>(model.params().values().size()));
    EXPECT_EQ(need.optimizer,
        4 * static_cast<int64_t>(model.params().grads().size() * (1 + optimizer.arrays().size())));
    EXPECT_EQ(PlanOf(loaded).Need(4160).optimizer,
        need.optimizer + 4 * static_cast<int64_t>(model.params().grads().size()))
        << "three passes at most: one partial sum";
  }
  LoadedSpec muon = Spec();
  muon.spec.mutable_optimizer()->set_muon_rate(1);
  EXPECT_EQ(PlanOf(muon).Need(512).optimizer - PlanOf(whole).Need(512).optimizer,
      Threads() * Orthogonalizer::MostBytes(256, 64, DType::kF32));
  const TrainingNeed all = PlanOf(whole).Need(512), some = PlanOf(head).Need(512);
  EXPECT_LT(some.activations, all.activations);
  EXPECT_LT(some.total(), all.total());
}

TEST(MemoryPlan, GrowsWithThePassUpToTheBatch) {
  const LoadedSpec loaded = Spec(0, 0, 1000);
  const MemoryPlan plan = PlanOf(loaded);
  EXPECT_LT(plan.Need(256).total(), plan.Need(512).total());
  EXPECT_EQ(plan.Need(1024).activations, plan.Need(100000).activations)
      << "no pass has more tokens than a batch";
  LoadedSpec again = loaded;
  again.spec.mutable_runtime()->set_recompute(true);
  EXPECT_LT(PlanOf(again).Need(512).total(), plan.Need(512).total());
}

TEST(MemoryPlan, AveragesOfPiecesNeedTheHiddenStatesOfAllPieces) {
  LoadedSpec loaded = Spec();
  loaded.spec.mutable_token_tagging();
  ModelConfig config = Config(64, 1);
  config.head = HeadKind::kTokenTagging, config.labels = {"A", "B"};
  const auto activations = [&] {
    return MemoryPlan(loaded.spec, config, DType::kF32, {.mean_length = 100, .words = 0.25})
        .Need(512)
        .activations;
  };
  const int64_t first = activations();
  loaded.spec.mutable_token_tagging()->set_pieces(TokenTaggingSpec::MEAN);
  EXPECT_GT(activations(), first);
}

TEST(ChooseMicroTokens, TakesTheDefaultOrTheBatchWhereThereIsRoom) {
  std::string note;
  EXPECT_EQ(*Choose(Spec(), &note), 8192);
  EXPECT_EQ(*Choose(Spec(0, 0, 32768), &note), 8192);
  EXPECT_EQ(*Choose(Spec(0, 0, 3000), &note), 3000);
  EXPECT_EQ(*Choose(Spec(0, 0, 60), &note), 128) << "one sequence has to fit";
  EXPECT_EQ(*Choose(Spec(0, 12345), &note), 12345);
  LoadedSpec examples = Spec();
  examples.spec.mutable_batch()->set_examples(4);
  EXPECT_EQ(*Choose(examples, &note), 512);
  EXPECT_EQ(note, "");
}

TEST(ChooseMicroTokens, TakesTheLargestThatFits) {
  const MemoryPlan plan = PlanOf(Spec());
  for (const int64_t tokens : {128, 192, 256, 768, 4096}) {
    const int64_t limit = plan.Need(tokens).total() / kMegabyte + 1;
    std::string note;
    const auto chosen = Choose(Spec(limit), &note);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_GE(*chosen, tokens);
    EXPECT_LE(plan.Need(*chosen).total(), limit * kMegabyte);
    for (const int64_t larger : {192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144}) {
      if (larger <= *chosen) continue;
      EXPECT_GT(plan.Need(larger).total(), limit * kMegabyte) << larger;
    }
    EXPECT_EQ(*chosen % 64, 0);
    EXPECT_THAT(note, HasSubstr("8192 would need"));
  }
}

TEST(ChooseMicroTokens, RefusesWhatCannotFit) {
  std::string note;
  const int64_t limit = PlanOf(Spec()).Need(1024).total() / kMegabyte + 1;
  const absl::Status wish = Choose(Spec(limit, 8192), &note).status();
  EXPECT_EQ(ExitOf(wish), Exit::kLimit);
  EXPECT_THAT(std::string(wish.message()),
      HasSubstr("spec: batch.micro_tokens: 8192 tokens in a pass need "));
  EXPECT_THAT(std::string(wish.message()),
      HasSubstr(absl::StrCat("runtime.memory_limit_mb is ", limit, "; 1024 would fit")));
  const absl::Status small = Choose(Spec(1), &note).status();
  EXPECT_EQ(ExitOf(small), Exit::kLimit);
  EXPECT_THAT(std::string(small.message()), HasSubstr("128 tokens in a pass need"));
  EXPECT_THAT(std::string(small.message()), HasSubstr("nothing fits; try a smaller model.encoder"));
  const absl::Status endless = Choose(Spec(), &note, Config(16384, 1024)).status();
  EXPECT_EQ(ExitOf(endless), Exit::kLimit);
  EXPECT_THAT(std::string(endless.message()), HasSubstr("this machine has"));
  EXPECT_EQ(note, "");
}

// Kilobytes of a line of /proc/self/status, in bytes.
int64_t StatusBytes(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  char line[256];
  long long kilobytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0)
      kilobytes = std::atoll(line + std::strlen(key));
  }
  std::fclose(file);
  return kilobytes * 1024;
}

TEST(MemoryPlan, IsWhatTheProcessGrowsBy) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have memory of their own";
  SetThreads(2);
  for (const bool recompute : {false, true}) {
    LoadedSpec loaded = Spec(0, 4096, 4096);
    loaded.spec.mutable_runtime()->set_recompute(recompute);
    const MemoryPlan plan = PlanOf(loaded, Config(128, 6));
    const TrainingNeed need = plan.Need(4096);
    const int64_t before = StatusBytes("VmRSS:");
    Model model(Config(128, 6), true);
    const auto task = MakeTask(model.config().head);
    model.Initialize(1);
    model.arena().Reserve(need.arena);
    model.matmul().SharePacked(need.one_pass);
    Optimizer optimizer(&model.params(), OptimizerSpec());
    Batch batch;
    for (int s = 0; s < 32; ++s) {
      std::vector<int32_t> ids(128);
      for (int i = 0; i < 128; ++i) {
        ids[i] = (s * 128 + i * 7) % 1000;
        if (i % 7 != 0) continue;
        batch.rows.push_back(static_cast<int32_t>(batch.tokens()) + i);
        batch.targets.push_back(ids[i]);
      }
      batch.Add(ids, 128, s);
    }
    batch.Pad();
    for (int i = 0; i < 2; ++i) {
      task->Train(model, batch, {DType::kF32, 1, 1e-3f, recompute});
      optimizer.Step(1e-4, optimizer.GradNorm());
    }
    const int64_t grown = StatusBytes("VmRSS:") - before;
    EXPECT_LE(model.arena().peak(), need.arena);
    EXPECT_GE(model.arena().peak(), need.arena * 97 / 100);
    EXPECT_LE(grown, need.total()) << recompute;
    EXPECT_GE(grown, (need.total() - need.other) * 85 / 100) << recompute;
  }
  SetThreads(1);
}

}  // namespace
}  // namespace cloze
