// Which stores share a place in the cache.
#include "tests/tasks/stores.h"

#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

class StoresTest : public FilesTest {};

TEST_F(StoresTest, TrainingAndEvaluationHaveStoresOfTheirOwn) {
  const DataSpec data =
      Data("a.conll", "the\tA\ncat\tB\nmat\tA\nsat\tB\nthe\tA\ncat\tB\nmat\tA\nsat\tB\n");
  TokenTaggingSpec task;
  task.set_max_tokens(6);
  const auto build = [&](DataUse use) {
    auto built = BuildTagging(data, task, {"A", "B"}, *SmallTokenizer(),
        {.cache_dir = Path("cache"), .progress = nullptr}, use);
    EXPECT_TRUE(built.ok()) << built.status();
    return *std::move(built);
  };
  const BuiltStore training = build(DataUse::kTraining), evaluation = build(DataUse::kEvaluation);
  EXPECT_FALSE(evaluation.reused);
  EXPECT_NE(training.store.tokens(), evaluation.store.tokens()) << "windows overlap";
}

}  // namespace
}  // namespace cloze
