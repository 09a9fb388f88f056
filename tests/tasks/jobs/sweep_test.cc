// Runs over the values of fields.
#include "tasks/jobs/sweep.h"

#include <cmath>

#include "tasks/jobs/runs.h"
#include "tasks/jobs/verify.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class SweepTest : public TrainerTest {
 protected:
  LoadedSpec Classes(const std::string& run, int steps = 8) {
    LoadedSpec loaded = Spec(
        NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, steps);
    loaded.spec.mutable_validation()->add_files(Path("classes.tsv"));
    loaded.spec.mutable_evaluation()->set_metric("loss");
    return loaded;
  }
  absl::StatusOr<SweepSummary> Sweep(
      const LoadedSpec& loaded, const std::vector<std::string>& sweeps, int stop_after = 1000000) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    steps_ = 0;
    auto summary = TrainSweep(
        loaded, sweeps, {.preparing = nullptr, .stop = &stop, .after_step = [&](int64_t) {
                           ++steps_;
                           stop = --stop_after == 0;
                         }});
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  }
  int steps_ = 0;  // of the last Sweep
};

const std::vector<std::string> kSweeps = {
    "optimizer.learning_rate=1e-4,0.003", "schedule.steps=6,8"};

TEST_F(SweepTest, TrainsTheProductAndKeepsTheBest) {
  const auto straight = Sweep(Classes("straight"), kSweeps);
  ASSERT_TRUE(straight.ok()) << straight.status();
  ASSERT_EQ(straight->runs.size(), 4);
  EXPECT_EQ(steps_, 28);
  EXPECT_EQ(straight->runs[0].folder, "optimizer.learning_rate=1e-4,schedule.steps=6");
  EXPECT_EQ(straight->runs[1].steps, 8);
  EXPECT_EQ(straight->metric.name, "loss");
  double least = 1e9;
  for (const auto& run : straight->runs) least = std::min(least, run.value);
  const SweepSummary::Run& best = straight->runs[straight->best];
  EXPECT_EQ(best.value, least);
  EXPECT_EQ(best.values[0], "0.003");
  EXPECT_EQ(Weights("straight"), Weights("straight/" + best.folder));
  EXPECT_EQ(Read(Path("straight/spec.textproto")),
      Read(Path("straight/" + best.folder + "/spec.textproto")));
  EXPECT_THAT(Read(Path("straight/sweep.json")), HasSubstr("\"best\": \"" + best.folder));
  const auto verdicts = VerifyRun(Path("straight"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_GE(verdicts->size(), 9);
  for (const Verdict& verdict : *verdicts)
    EXPECT_TRUE(verdict.status.ok()) << verdict.folder << ": " << verdict.status;
  // Again: nothing is trained.
  const auto again = Sweep(Classes("straight"), kSweeps);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(steps_, 0);
  EXPECT_EQ(again->runs[again->best].folder, best.folder);
  // In pieces: the same bits.
  int stops = 0;
  absl::StatusOr<SweepSummary> pieces;
  while (!(pieces = Sweep(Classes("pieces"), kSweeps, 5)).ok()) {
    ASSERT_EQ(ExitOf(pieces.status()), Exit::kInterrupted) << pieces.status();
    ASSERT_LT(++stops, 10);
  }
  EXPECT_GT(stops, 3);
  EXPECT_EQ(Read(Path("pieces/sweep.json")), Read(Path("straight/sweep.json")));
  EXPECT_EQ(Weights("pieces"), Weights("straight"));
  ExpectError(Train(Classes("straight")).status(), Exit::kCannotCreate, "holds runs of a sweep");
}

TEST_F(SweepTest, FieldsOfTheTrainingDataAreThoseOfTheRowsHeldOut) {
  std::string rows = "text\tnoise\tlabel\n";
  for (int i = 0; i < 60; ++i)
    absl::StrAppend(&rows, i % 2 == 0 ? "the cat sat on mat " : "a dog ran to box ", i, "\tred ", i,
        i % 2 == 0 ? "\tcat\n" : "\tdog\n");
  Write("two.tsv", rows);
  LoadedSpec spec = Classes("run");
  spec.spec.mutable_train()->set_files(0, Path("two.tsv"));
  spec.spec.mutable_validation()->Clear();
  spec.spec.mutable_validation()->set_share(0.2f);
  HoldOut(&spec.spec);
  const auto summary = Sweep(spec, {"train.text_field=noise,text"});
  ASSERT_TRUE(summary.ok()) << summary.status();
  const std::string noise = Read(Path("run/train.text_field=noise/spec.textproto")),
                    field = "text_field: \"noise\"";
  const size_t first = noise.find(field);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(noise.find(field, first + 1), std::string::npos) << noise;
  ExpectError(Sweep(spec, {"train.files=a,b"}).status(), Exit::kUsage, "could not be compared");
}

TEST_F(SweepTest, GoesOnAfterNumbersThatOverflow) {
  LoadedSpec spec = Classes("run", 30);
  spec.spec.mutable_optimizer()->set_clip_norm(0);
  spec.spec.mutable_optimizer()->set_weight_decay(10);
  const auto summary = Sweep(spec, {"optimizer.learning_rate=10,1e-3"});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(ExitOf(summary->runs[0].status), Exit::kInternal);
  EXPECT_EQ(summary->best, 1);
  EXPECT_THAT(Read(Path("run/sweep.json")),
      HasSubstr("\"error\": \"cannot save: the model's results are not finite"));
}

// All texts of one column are <unk>, so all predictions are equal.
TEST_F(SweepTest, GoesOnAfterAMetricThatIsNotANumber) {
  std::string rows = "text\tnothing\tlabel\n";
  for (int i = 0; i < 60; ++i)
    absl::StrAppend(&rows, i % 2 == 0 ? "the cat zq" : "a dog zq", i, "\tzq", i, "\t", i % 2, "\n");
  Write("numbers.tsv", rows);
  LoadedSpec spec = Classes("run", 12);
  spec.spec.mutable_sequence_classification()->set_kind(SequenceClassificationSpec::REGRESSION);
  spec.spec.mutable_train()->set_files(0, Path("numbers.tsv"));
  spec.spec.mutable_validation()->Clear();
  spec.spec.mutable_validation()->set_share(0.2f);
  spec.spec.mutable_evaluation()->set_metric("pearson");
  HoldOut(&spec.spec);
  const auto summary = Sweep(spec, {"train.text_field=nothing,text"});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(std::string(summary->runs[0].status.message()), HasSubstr("never a number"));
  EXPECT_EQ(summary->best, 1);
}

TEST_F(SweepTest, KeepsTheRunsOfEarlierSweeps) {
  const auto first = Sweep(Classes("run"), {"optimizer.learning_rate=1e-5,0.003"});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string best = "optimizer.learning_rate=0.003";
  ASSERT_EQ(first->runs[first->best].folder, best);
  const std::string weights = Weights("run");
  const auto second = Sweep(Classes("run"), {"optimizer.learning_rate=1e-6,1e-7"});
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(second->runs.size(), 4);
  EXPECT_EQ(second->runs[second->best].folder, best);
  EXPECT_EQ(second->runs[second->best].value, first->runs[first->best].value);
  EXPECT_EQ(second->runs[second->best].steps, 8);
  EXPECT_EQ(Weights("run"), weights);
  EXPECT_EQ(Read(Path("run/spec.textproto")), Read(Path("run/" + best + "/spec.textproto")));
  const std::string all = Read(Path("run/sweep.json"));
  for (const char* rate : {"1e-5", "0.003", "1e-6", "1e-7"})
    EXPECT_THAT(all, HasSubstr(absl::StrCat("\"optimizer.learning_rate=", rate, "\"")));
  EXPECT_THAT(all, HasSubstr("\"best\": \"" + best + "\""));
  // Their folders count, also if an earlier version has lost the rows, and if a sweep is stopped.
  std::filesystem::remove(Path("run/sweep.json"));
  EXPECT_EQ(ExitOf(Sweep(Classes("run"), {"batch.tokens=64,96"}, 12).status()), Exit::kInterrupted);
  EXPECT_THAT(Read(Path("run/sweep.json")), HasSubstr("\"best\": \"" + best + "\""));
  EXPECT_EQ(Weights("run"), weights);
  // A run that was evaluated on other texts cannot be compared.
  LoadedSpec other = Classes("run");
  other.spec.mutable_validation()->set_files(0, Path("swapped.tsv"));
  ExpectError(Sweep(other, {"optimizer.learning_rate=0.1,0.2"}).status(), Exit::kMismatch,
      "was evaluated on other texts");
  EXPECT_EQ(Weights("run"), weights);
}

TEST_F(SweepTest, KeepsTheRepeatedRunsOfEarlierSweeps) {
  LoadedSpec spec = Classes("run", 6);
  spec.spec.set_repeat(2);
  const auto first = Sweep(spec, {"optimizer.learning_rate=1e-5,0.003"});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Sweep(spec, {"optimizer.learning_rate=1e-6,1e-7"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->runs[second->best].folder, "optimizer.learning_rate=0.003");
  EXPECT_NEAR(second->runs[second->best].value, first->runs[1].value, 1e-12) << "the mean";
}

// One text is right or wrong: runs with equal accuracy differ in their loss.
TEST_F(SweepTest, EqualRunsAreDecidedByTheLossAndThenByTheirOrder) {
  Write("one.tsv", "text\tlabel\nthe cat sat\tbird\nthe cat sat\tcat\n");
  LoadedSpec spec = Classes("run", 4);
  spec.spec.mutable_validation()->set_files(0, Path("one.tsv"));
  spec.spec.mutable_evaluation()->set_metric("accuracy");
  const auto summary = Sweep(spec, {"optimizer.learning_rate=1e-7,2e-7,3e-7,4e-7"});
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto& runs = summary->runs;
  int expected = 0;
  for (int i = 1; i < 4; ++i) {
    const bool better =
        runs[i].value > runs[expected].value ||
        (runs[i].value == runs[expected].value && runs[i].loss < runs[expected].loss);
    if (better) expected = i;
  }
  EXPECT_EQ(summary->best, expected);
  EXPECT_EQ(BestOfRuns(summary->metric, {{1, 0.5}, {1, 0.4}, {1, 0.4}, {0.9, 0.1}}), 1);
  EXPECT_EQ(BestOfRuns(summary->metric, {{}, {0, NAN}, {0, NAN}}), 1);
  EXPECT_EQ(BestOfRuns(summary->metric, {{}, {}}), -1);
}

TEST_F(SweepTest, WritesIntoNoFolderThatIsALink) {
  std::filesystem::create_directories(Path("elsewhere"));
  std::filesystem::create_directories(Path("run"));
  for (const char* target : {"../elsewhere", "../nowhere"}) {
    const std::string link = Path("run/optimizer.learning_rate=0.003");
    std::filesystem::create_symlink(target, link);
    ExpectError(Sweep(Classes("run"), {"optimizer.learning_rate=1e-4,0.003"}).status(),
        Exit::kCannotCreate, "optimizer.learning_rate=0.003: is a link");
    EXPECT_EQ(steps_, 0);
    std::filesystem::remove(link);
  }
  LoadedSpec repeated = Classes("run");
  repeated.spec.set_repeat(2);
  std::filesystem::create_symlink("../elsewhere", Path("run/seed-2"));
  ExpectError(TrainRepeatedly(repeated, {}).status(), Exit::kCannotCreate, "seed-2: is a link");
  EXPECT_TRUE(std::filesystem::is_empty(Path("elsewhere")));
  EXPECT_FALSE(PathExists(Path("nowhere")));
}

TEST_F(SweepTest, MarksItsDirectoryFromTheBeginning) {
  EXPECT_EQ(ExitOf(Sweep(Classes("run"), kSweeps, 2).status()), Exit::kInterrupted);
  ExpectError(Train(Classes("run")).status(), Exit::kCannotCreate, "holds runs of a sweep");
  EXPECT_TRUE(Sweep(Classes("run"), kSweeps).ok());
}

TEST_F(SweepTest, WrongSweepsAreRefusedBeforeTheFirstRun) {
  for (const auto& [sweep, problem] :
      {std::pair("optimizer.learning_rate", "expected FIELD=VALUE,VALUE"),
          std::pair("optimizer.learning_rate=1e-4", "expected FIELD=VALUE,VALUE"),
          std::pair("optimizer.learning_rate=1e-4,,1", "expected FIELD=VALUE,VALUE"),
          std::pair("optimizer.learning_rate=1,1", "\"1\" is given twice"),
          std::pair("output.directory=a,b", "could not be compared")})
    ExpectError(Sweep(Classes("run"), {sweep}).status(), Exit::kUsage, problem);
  ExpectError(
      Sweep(Classes("run"), {"optimizer.lr=1,2"}).status(), Exit::kSpec, "unknown field \"lr\"");
  ExpectError(Sweep(Classes("run"), {"optimizer.learning_rate=1e-3,100"}).status(), Exit::kSpec,
      "out of range");
  ExpectError(Sweep(Classes("run"), {"optimizer.learning_rate=1e-3,fast"}).status(), Exit::kSpec,
      "sweep optimizer.learning_rate=fast: ");
  ExpectError(Sweep(Classes("run"), {"trainable.last_layers=1,100"}).status(), Exit::kSpec,
      "trainable.last_layers is 100");
  LoadedSpec blind = Classes("run");
  blind.spec.clear_validation();
  ExpectError(Sweep(blind, kSweeps).status(), Exit::kSpec, "needs it");
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
  ASSERT_TRUE(Train(Classes("single")).ok());
  ExpectError(Sweep(Classes("single"), kSweeps).status(), Exit::kCannotCreate, "a single run");
}

}  // namespace
}  // namespace cloze
