// Runs whose memory is short: the micro-batch that they choose, remember and keep, and
// recomputation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "encoder/folder/model_folder.h"
#include "tasks/compute_type.h"
#include "tasks/training/memory.h"
#include "tests/durability/runs.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using testing::Not;

class MicroBatchTest : public RunsTest {
 protected:
  // A run of 4 steps of 4096 tokens, in passes as large as fit into `limit_mb`.
  LoadedSpec Large(const std::string& run, int64_t limit_mb, bool recompute = false) {
    LoadedSpec loaded = Spec(run, false, 4, "", 64);
    loaded.spec.mutable_batch()->set_tokens(4096);
    loaded.spec.mutable_batch()->clear_micro_tokens();
    loaded.spec.mutable_runtime()->set_memory_limit_mb(limit_mb);
    loaded.spec.mutable_runtime()->set_recompute(recompute);
    return loaded;
  }
  absl::Status Interrupted(const LoadedSpec& spec, int64_t after) {
    std::atomic<bool> stop = false;
    return Train(spec, {.stop = &stop, .after_step = [&](int64_t step) { stop = step >= after; }})
        .status();
  }
  // The limit in MB under which `tokens` fit.
  int64_t LimitOf(int64_t tokens) {
    EXPECT_TRUE(Train(Spec("shape", false, 1, "", 64)).ok());
    const auto config = LoadConfig(Path("shape"));
    EXPECT_TRUE(config.ok()) << config.status();
    const MemoryPlan plan(Large("", 0).spec, *config, TrainingType(RuntimeSpec::AUTO), {});
    return plan.Need(tokens).total() / 1000000 + 1;
  }
  std::string SpecOf(const std::string& run) { return Read(Path(run) + "/spec.textproto"); }
};

TEST_F(MicroBatchTest, IsRecordedAndKeptBySuccessors) {
  ASSERT_TRUE(Train(Large("free", 0)).ok());
  EXPECT_THAT(SpecOf("free"), HasSubstr("micro_tokens: 4096\n"));
  EXPECT_THAT(said_, Not(HasSubstr("micro_tokens")));
  const int64_t limit = LimitOf(1024);
  ASSERT_TRUE(Train(Large("straight", limit)).ok());
  EXPECT_THAT(said_, HasSubstr("batch.micro_tokens: "));
  EXPECT_THAT(said_, HasSubstr(", because 4096 would need "));
  const auto recorded = ParseSpec(SpecOf("straight"), "recorded");
  ASSERT_TRUE(recorded.ok());
  EXPECT_GE(recorded->spec.batch().micro_tokens(), 1024);
  EXPECT_LT(recorded->spec.batch().micro_tokens(), 4096);
  // With more memory it goes on as it began.
  EXPECT_EQ(ExitOf(Interrupted(Large("pieces", limit), 2)), Exit::kInterrupted);
  ExpectError(Train(Large("pieces", 1)).status(), Exit::kLimit, "batch.micro_tokens: ");
  ASSERT_TRUE(Train(Large("pieces", 0)).ok()) << said_;
  EXPECT_EQ(Bits("pieces", 4), Bits("straight", 4));
  EXPECT_EQ(SpecOf("pieces").find("micro_tokens: 4096"), std::string::npos);
  LoadedSpec other = Large("straight", limit);
  other.spec.mutable_batch()->set_micro_tokens(64);
  ExpectError(Train(other).status(), Exit::kMismatch, "micro_tokens");
}

TEST_F(MicroBatchTest, RecomputingGivesTheSameBitsAlsoHalfWay) {
  ASSERT_TRUE(Train(Large("straight", 0)).ok());
  EXPECT_EQ(ExitOf(Interrupted(Large("pieces", 0), 2)), Exit::kInterrupted);
  ASSERT_TRUE(Train(Large("pieces", 0, true)).ok()) << said_;
  EXPECT_EQ(Bits("pieces", 4), Bits("straight", 4));
}

}  // namespace
}  // namespace cloze
