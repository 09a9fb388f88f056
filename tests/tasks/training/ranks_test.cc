// Runs that several ranks share, here threads of one process.
#include <gtest/gtest.h>

#include "tasks/inference/evaluate.h"
#include "tests/tasks/training/train_on_ranks.h"
#include "tests/tasks/training/trainer_fixture.h"
#include "tests/tasks/update/thread_ranks.h"

namespace cloze {
namespace {

class RunOfRanksTest : public TrainerTest, public testing::WithParamInterface<float> {
 protected:
  // Of a model in whose weights each rank has a part.
  LoadedSpec RunSpec(const std::string& run) {
    LoadedSpec loaded =
        Spec(absl::StrCat("model { tokenizer: \"", Path("vocab"),
                 "\" encoder { preset: CUSTOM layers: 2 hidden: 128 heads: 2 intermediate: 512 "
                 "max_positions: 64 } } masked_lm { max_tokens: 32 } validation { files: \"",
                 Path("text.txt"), "\" } evaluation { every_steps: 3 }"),
            "text.txt", run, 8);
    loaded.spec.mutable_runtime()->set_compute(RuntimeSpec::BF16);
    loaded.spec.mutable_optimizer()->set_muon_rate(GetParam());
    loaded.spec.mutable_optimizer()->set_ema_decay(GetParam() > 0 ? 0.9f : 0);
    return loaded;
  }
};

// In bf16: no rounded weight is in a file.
TEST_P(RunOfRanksTest, LeavesTheFilesOfOneRank) {
  const auto one = Train(RunSpec("one"));
  ASSERT_TRUE(one.ok()) << one.status();
  const LoadedSpec spec = RunSpec("three");
  testing::internal::CaptureStderr();
  ForRanks([&](ThreadRanks& ranks) {
    const auto trainer = Trainer::Create(spec, {.ranks = &ranks});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const auto summary = (*trainer)->Run();
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->best.values, one->best.values);
  });
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Weights("one") == Weights("three"));
  for (const char* name : {"step-00000004/model.safetensors", "step-00000008/model.safetensors",
           "step-00000008/optimizer.safetensors"})
    EXPECT_TRUE(Read(Path("one/") + name) == Read(Path("three/") + name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RunOfRanksTest, testing::Values(0, 2),
    [](const auto& info) { return info.param > 0 ? "MuonAverage" : "AdamW"; });

// Rank 0 reads the stream; the others, whose standard input may be anything, read its store.
TEST_F(TrainerTest, RanksShareAStream) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "one", 4)).ok());
  const TextPipe pipe(Read(Path("text.txt")));
  LoadedSpec spec = Spec(Mlm(), "text.txt", "three", 4);
  spec.spec.mutable_train()->set_files(0, pipe.path());
  spec.spec.mutable_train()->set_format(DataSpec::TEXT);
  TrainOnRanks(spec);
  EXPECT_TRUE(Weights("one") == Weights("three"));
}

class EvaluationOfRanksTest : public TrainerTest {};

TEST_F(EvaluationOfRanksTest, EndsOnAllRanksIfOneCannotReadAnExample) {
  const LoadedSpec loaded = Spec(Mlm(), "text.txt", "run", 1);
  ASSERT_TRUE(Train(loaded).ok());
  const auto tokenizer = LoadTokenizer(Path("run"), true);
  const auto config = LoadConfig(Path("run"));
  ASSERT_TRUE(tokenizer.ok() && config.ok());
  const auto task = MakeTask(loaded.spec);
  ASSERT_TRUE(task->Bind(*config, tokenizer->get(), 1).ok());
  BuildOptions options;
  options.cache_dir = Path("cache");
  const auto built = task->Build(loaded.spec.train(), DataUse::kTraining, **tokenizer, options);
  ASSERT_TRUE(built.ok()) << built.status();
  const std::string damaged = Path("damaged");
  std::filesystem::copy(built->store.folder(), damaged);
  std::string tokens = Read(damaged + "/tokens");
  tokens.back() ^= 1;
  std::ofstream(damaged + "/tokens") << tokens;
  ForRanks([&](Ranks& ranks) {
    const auto store =
        ExampleStore::Open(ranks.rank() == 1 ? damaged : built->store.folder(), config->vocab, 0);
    ASSERT_TRUE(store.ok()) << store.status();
    Model model(*config, false);
    std::vector<std::string> fresh;
    ASSERT_TRUE(model.Load(Path("run"), 0, &fresh).ok());
    const auto results = Evaluate(model, *task, *store, {.batch_tokens = 64, .ranks = &ranks});
    ExpectError(results.status(), Exit::kData, "does not fit its checksum");
  });
}

}  // namespace
}  // namespace cloze
