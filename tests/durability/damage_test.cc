// Every byte flipped and every length cut, of every file of a small checkpoint and of the model:
// each is noticed before anything is read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/jobs/verify.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/trainer_state.h"
#include "tests/durability/runs.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class DamageTest : public RunsTest {
 protected:
  DamageTest() { EXPECT_TRUE(Train(Spec("run", true, 2, "", 8)).ok()); }

  // Does `is_damaged` see every flip and every cut of the files of `folder`? Returns how many there
  // were.
  static int64_t Damage(const std::string& folder, const std::vector<std::string>& names,
      const std::function<bool()>& is_damaged) {
    int64_t cases = 0;
    for (const std::string& name : names) {
      const std::string path = JoinPath(folder, name), good = Read(path);
      const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      const auto put = [&](int64_t at, const char* data, int64_t n) {
        EXPECT_EQ(::pwrite(fd.get(), data, n, at), n);
      };
      for (int64_t i = good.size() - 1; i >= 0; --i, cases += 2) {
        const char bad = good[i] ^ (1 << (i % 8));
        put(i, &bad, 1);
        EXPECT_TRUE(is_damaged()) << name << ", byte " << i;
        put(i, &good[i], 1);
        EXPECT_EQ(::ftruncate(fd.get(), i), 0);
        EXPECT_TRUE(is_damaged()) << name << ", cut to " << i;
        put(i, &good[i], good.size() - i);
      }
      EXPECT_FALSE(is_damaged()) << name;
    }
    return cases;
  }
};

TEST_F(DamageTest, OfACheckpoint) {
  const std::string folder = Path("run/step-00000002");
  const auto names = ListDirectory(folder);
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names,
      testing::IsSupersetOf({"MANIFEST", "config.json", "model.safetensors",
          "optimizer.safetensors", "samples.safetensors", "trainer.textproto", "vocab.txt"}));
  const int64_t cases =
      Damage(folder, *names, [&] { return ExitOf(VerifyCheckpoint(folder)) == Exit::kMismatch; });
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GT(cases, 30000);
}

TEST_F(DamageTest, OfTheModel) {
  const std::string folder = Path("run");
  const auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok());
  std::vector<std::string> names = {kManifestName};
  for (const Manifest::File& file : manifest->files) names.push_back(file.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"config.json", "metrics.json", "model.safetensors",
                         "samples.safetensors", "vocab.txt"}));
  const int64_t cases = Damage(folder, names, [&] {
    const auto now = ReadManifest(folder);
    return !now.ok() || !CheckFiles(folder, *now, true).ok();
  });
  EXPECT_GT(cases, 15000);
}

TEST_F(DamageTest, IsNamedByVerifyAndPassedOverByResume) {
  const auto verdicts = VerifyRun(Path("run"));
  ASSERT_TRUE(verdicts.ok());
  ASSERT_EQ(verdicts->size(), 3);  // the model, two checkpoints
  for (const Verdict& verdict : *verdicts) {
    EXPECT_TRUE(verdict.status.ok()) << verdict.status;
    EXPECT_EQ(verdict.difference, 0);
    EXPECT_GT(verdict.numbers, 1000);
  }
  std::filesystem::resize_file(Path("run/step-00000002/optimizer.safetensors"), 100);
  Write("run/vocab.txt", "the\n");
  const auto damaged = VerifyRun(Path("run"));
  ASSERT_TRUE(damaged.ok());
  EXPECT_THAT(std::string((*damaged)[0].status.message()), HasSubstr("vocab.txt"));
  EXPECT_THAT(
      std::string((*damaged)[1].status.message()), HasSubstr("optimizer.safetensors: 100 bytes"));
  EXPECT_TRUE((*damaged)[2].status.ok());
  EXPECT_TRUE(Train(Spec("run", true, 2, "", 8)).ok());
  EXPECT_THAT(said_, HasSubstr("skipped step-00000002"));
  EXPECT_THAT(said_, HasSubstr("resumed at step 1 of 2"));
}

TEST_F(DamageTest, AStateOfAnotherStepIsNamedByVerify) {
  auto state = ReadTrainerState(Path("run/step-00000002"));
  ASSERT_TRUE(state.ok()) << state.status();
  state->set_step(1);
  state->set_best_step(0);
  state->set_evaluations_without_best(0);
  std::filesystem::create_directories(Path("other"));
  const std::vector<std::string> names = ListDirectory(Path("run/step-00000002")).value();
  const auto write = [&](const std::string& folder) {
    for (const std::string& name : names) {
      if (name != kManifestName && name != kStateName)
        std::filesystem::copy_file(Path("run/step-00000002/" + name), JoinPath(folder, name));
    }
    return WriteTrainerState(folder, *state);
  };
  ASSERT_TRUE(SaveCheckpoint(Path("other"), 2, write, 1).ok());
  const auto verdicts = VerifyRun(Path("other/step-00000002"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  ExpectError(verdicts->front().status, Exit::kMismatch,
      "trainer.textproto is of step 1, MANIFEST of step 2");
}

TEST_F(DamageTest, OtherNumbersThanTheSamplesAreNoticed) {
  // A model whose files fit their MANIFEST, but which is another one: its samples come out
  // otherwise.
  ASSERT_TRUE(Train(Spec("other", true, 2, "seed: 7", 8)).ok());
  std::filesystem::copy_file(Path("other/samples.safetensors"), Path("run/samples.safetensors"),
      std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(Path("run/MANIFEST"));
  const auto verdicts = VerifyRun(Path("run"));
  ASSERT_TRUE(verdicts.ok());
  EXPECT_FALSE(verdicts->front().manifest);
  ExpectError(verdicts->front().status, Exit::kMismatch, "samples.safetensors: output 0 is ");
  ExpectError(
      VerifyRun(Path("vocab")).status(), Exit::kNoInput, "expected a model or a checkpoint");
}

}  // namespace
}  // namespace cloze
