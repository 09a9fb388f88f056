// Whole runs, with dropout, end with the same bits: whatever the number of threads, wherever they
// were interrupted, whatever the clock says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/jobs/verify.h"
#include "tests/durability/faults.h"
#include "tests/durability/runs.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class SameBitsTest : public RunsTest {
 protected:
  ~SameBitsTest() override { SetThreads(1); }
};

TEST_F(SameBitsTest, AtAnyNumberOfThreads) {
  for (const char* compute : {"F32", "BF16"}) {
    for (const bool classify : {false, true}) {
      std::string bits;
      for (const int threads : {1, 2, 3, 4, 8}) {
        const std::string run = absl::StrCat("run-", compute, classify, threads);
        LoadedSpec spec = Spec(run, classify, 5,
            absl::StrCat("runtime { threads: ", threads, " compute: ", compute, " }"), 64);
        spec.spec.mutable_output()->set_checkpoint_every_steps(5);
        const auto summary = Train(spec);
        ASSERT_TRUE(summary.ok()) << summary.status();
        if (bits.empty()) bits = Bits(run, 5);
        EXPECT_TRUE(Bits(run, 5) == bits) << run;
        const auto verdicts = VerifyRun(Path(run));
        ASSERT_TRUE(verdicts.ok());
        for (const Verdict& verdict : *verdicts) EXPECT_TRUE(verdict.status.ok()) << verdict.status;
      }
    }
  }
}

// Stopped after each step, and in each evaluation, with another number of threads each time.
TEST_F(SameBitsTest, WhereverItWasInterrupted) {
  for (const char* compute : {"F32", "BF16"}) {
    for (const bool classify : {false, true}) {
      const auto spec = [&](const char* run, int threads) {
        return Spec(absl::StrCat(run, compute, classify), classify, 6,
            absl::StrCat("runtime { threads: ", threads, " compute: ", compute, " }"));
      };
      const auto straight = Train(spec("straight", 1));
      ASSERT_TRUE(straight.ok()) << straight.status();
      absl::StatusOr<Trainer::Summary> last = absl::UnknownError("");
      int stops = 0;
      for (int i = 0; !last.ok() && i < 20; ++i) {
        std::atomic<bool> stop = false;
        last = Train(spec("pieces", i % 3 + 1),
            {.stop = &stop, .after_step = [&](int64_t) { stop = true; }});
        EXPECT_TRUE(last.ok() || ExitOf(last.status()) == Exit::kInterrupted) << last.status();
        stops += !last.ok();
      }
      ASSERT_TRUE(last.ok()) << last.status();
      EXPECT_GE(stops, 6 - !classify);
      EXPECT_TRUE(Bits(absl::StrCat("pieces", compute, classify), 6) ==
                  Bits(absl::StrCat("straight", compute, classify), 6))
          << compute;
      EXPECT_EQ(last->best.ToJson(), straight->best.ToJson());
      EXPECT_EQ(last->loss, straight->loss);
      // Once more, when all is done: the same answer, with its tables.
      const auto again = Train(spec("pieces", 1));
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->best.ToJson(), straight->best.ToJson());
      EXPECT_EQ(again->metric.name, straight->metric.name);
      EXPECT_EQ(classify, straight->best.ToJson().find("confusion") != std::string::npos);
    }
  }
}

TEST_F(SameBitsTest, WhenTheClockJumps) {
  ASSERT_TRUE(Train(Spec("calm", true, 4)).ok());
  for (const int64_t year : {-1, 1}) {
    const std::string run = absl::StrCat("jump", year);
    SetClockJump(year * 365 * 86400);
    const auto summary = Train(Spec(run, true, 4));
    SetClockJump(0);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(Bits(run, 4) == Bits("calm", 4));
  }
}

TEST_F(SameBitsTest, AForkBeginsWithTheOldWeightsAndResumesWithoutTheOldRun) {
  ASSERT_TRUE(Train(Spec("old", false, 3)).ok());
  LoadedSpec changed = Spec("old", false, 3, "optimizer { learning_rate: 0.01 }");
  const absl::Status refused = Train(changed).status();
  ExpectError(refused, Exit::kMismatch, "optimizer.learning_rate: 5e-05 -> 0.01");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("may start from the weights of this one"));

  changed.spec.mutable_output()->set_directory(Path("new"));
  std::atomic<bool> stop = false;
  const Trainer::Options fork = {
      .stop = &stop, .after_step = [&](int64_t step) { stop = step == 1; }, .fork = Path("old")};
  EXPECT_EQ(ExitOf(Train(changed, fork).status()), Exit::kInterrupted);
  EXPECT_THAT(said_, HasSubstr("a new run with the weights of " + Path("old/step-00000003")));
  EXPECT_EQ(Read(Path("new/step-00000000/model.safetensors")),
      Read(Path("old/step-00000003/model.safetensors")));
  std::filesystem::remove_all(Path("old"));
  stop = false;
  const auto summary = Train(changed, {.fork = Path("old")});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(said_, HasSubstr(QuotePath(Path("old")) + " is ignored"));
  EXPECT_THAT(said_, HasSubstr("resumed at step 1 of 3"));

  ExpectError(Train(Spec("third", false, 3), {.fork = Path("vocab")}).status(), Exit::kNoInput,
      "has no checkpoint");
  EXPECT_FALSE(PathExists(Path("third")));
  ExpectError(Train(Spec("third", false, 3), {.fork = Path("nowhere")}).status(), Exit::kNoInput,
      "nowhere");
}

TEST_F(SameBitsTest, MovedDataResumeAndChangedDataAreNamed) {
  LoadedSpec spec = Spec("run", false, 4);
  std::atomic<bool> stop = false;
  const auto change = [&](int64_t step) {
    if (step == 1) std::ofstream(Path("text.txt"), std::ios::app) << "more of it\n";
    stop = step == 2;
  };
  EXPECT_EQ(
      ExitOf(Train(spec, {.stop = &stop, .after_step = change}).status()), Exit::kInterrupted);
  EXPECT_THAT(said_, HasSubstr("warning: " + Path("text.txt") + ": the file has changed ("));
  ExpectError(Train(spec).status(), Exit::kMismatch, Path("text.txt") + " (");
  const std::string text = Read(Path("text.txt"));
  Write("moved.txt", text.substr(0, text.size() - 11));
  spec.spec.mutable_train()->set_files(0, Path("moved.txt"));
  const auto summary = Train(spec);
  EXPECT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(said_, HasSubstr("resumed at step 2"));
}

TEST_F(SameBitsTest, ATokenCacheThatIsCutUnderARunIsAnErrorAndNoSignal) {
  const LoadedSpec spec = Spec("run", false, 40);
  const auto cut = [&](int64_t step) {
    if (step != 2) return;
    for (const auto& store : std::filesystem::directory_iterator(Path("run/cache")))
      std::filesystem::resize_file(store.path() / "tokens", 10);
  };
  ExpectError(Train(spec, {.after_step = cut}).status(), Exit::kData, "tokens");
  const auto summary = Train(spec);  // built anew
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(said_, HasSubstr("the token cache was broken and is rebuilt"));
  EXPECT_THAT(said_, HasSubstr("resumed at step"));
}

TEST_F(SameBitsTest, AFailedStartLeavesNothing) {
  LoadedSpec metric = Spec("a/b/run", true, 4);
  metric.spec.mutable_evaluation()->set_metric("bleu");
  ExpectError(Train(metric).status(), Exit::kSpec, "bleu");
  EXPECT_FALSE(PathExists(Path("a")));
  std::filesystem::create_directories(Path("mine"));
  metric.spec.mutable_output()->set_directory(Path("mine"));
  ExpectError(Train(metric).status(), Exit::kSpec, "bleu");
  EXPECT_THAT(*ListDirectory(Path("mine")), testing::IsEmpty());
  std::atomic<bool> stop = true;
  EXPECT_EQ(ExitOf(Train(Spec("b/run", false, 4), {.stop = &stop}).status()), Exit::kInterrupted);
  EXPECT_FALSE(PathExists(Path("b")));
}

}  // namespace
}  // namespace cloze
