// Runs of a spec with `repeat`.

#include <cmath>

#include "encoder/folder/model_folder.h"
#include "tasks/jobs/sweep.h"
#include "tasks/jobs/verify.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

TEST_F(TrainerTest, RepeatsWithSeedsAndKeepsTheBest) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, 8);
    loaded.spec.mutable_validation()->add_files(Path("classes.tsv"));
    loaded.spec.mutable_evaluation()->set_metric("loss");
    loaded.spec.set_seed(5);
    loaded.spec.set_repeat(3);
    return loaded;
  };
  const auto repeat = [&](const std::string& run, int stop_after) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    auto summary = TrainRepeatedly(
        spec(run), {.preparing = nullptr, .stop = &stop, .after_step = [&](int64_t) {
                      stop = --stop_after == 0;
                    }});
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  };
  const auto straight = repeat("straight", 1000);
  ASSERT_TRUE(straight.ok()) << straight.status();
  ASSERT_EQ(straight->runs.size(), 3);
  double sum = 0, least = 1e9;
  for (const auto& run : straight->runs) sum += run.value, least = std::min(least, run.value);
  EXPECT_DOUBLE_EQ(straight->mean, sum / 3);
  double squares = 0;
  for (const auto& run : straight->runs) squares += std::pow(run.value - sum / 3, 2);
  EXPECT_GT(straight->deviation, 0);
  EXPECT_NEAR(straight->deviation, std::sqrt(squares / 2), 1e-9);
  EXPECT_EQ(straight->runs[straight->best].value, least);
  const std::string best = "straight/" + straight->runs[straight->best].folder;
  EXPECT_EQ(Weights("straight"), Weights(best));
  EXPECT_EQ(Read(Path("straight/metrics.json")), Read(Path(best + "/metrics.json")));
  EXPECT_TRUE(LoadConfig(Path("straight")).ok());
  EXPECT_THAT(Read(Path("straight/repeat.json")), HasSubstr("\"deviation\""));
  const auto verdicts = VerifyRun(Path("straight"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_GE(verdicts->size(), 7);  // the best model, and of each seed its model and checkpoints
  for (const Verdict& verdict : *verdicts)
    EXPECT_TRUE(verdict.status.ok()) << verdict.folder << ": " << verdict.status;
  int stops = 0;
  absl::StatusOr<SweepSummary> pieces;
  while (!(pieces = repeat("pieces", 5)).ok()) {
    ASSERT_EQ(ExitOf(pieces.status()), Exit::kInterrupted) << pieces.status();
    ASSERT_LT(++stops, 10);
  }
  EXPECT_GT(stops, 2);
  EXPECT_EQ(Read(Path("pieces/repeat.json")), Read(Path("straight/repeat.json")));
  EXPECT_EQ(Weights("pieces"), Weights("straight"));
  LoadedSpec fewer = spec("straight");
  fewer.spec.set_repeat(2);
  ExpectError(TrainRepeatedly(fewer, {}).status(), Exit::kCannotCreate,
      "seed-7: is a run of a seed that this spec does not repeat");
  EXPECT_THAT(Read(Path("straight/repeat.json")), HasSubstr("\"seed\": 7"));
  LoadedSpec single = spec("straight");
  single.spec.clear_repeat();
  ExpectError(Train(single).status(), Exit::kCannotCreate, "holds runs of a spec with `repeat`");
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "single", 4)).ok());
  ExpectError(
      TrainRepeatedly(spec("single"), {}).status(), Exit::kCannotCreate, "holds a single run");
}

TEST_F(TrainerTest, SeedsHoldOutTheSameRows) {
  LoadedSpec loaded =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 2);
  loaded.spec.mutable_validation()->set_share(0.4);
  HoldOut(&loaded.spec);
  loaded.spec.set_repeat(2);
  const auto summary = TrainRepeatedly(loaded, {});
  ASSERT_TRUE(summary.ok()) << summary.status();
  for (const auto& run : summary->runs)
    EXPECT_THAT(Read(Path("run/" + run.folder + "/spec.textproto")),
        testing::AllOf(HasSubstr("share_rule: 2"), HasSubstr("default_rule: 2")));
}

}  // namespace
}  // namespace cloze
