#include "tasks/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) { return JoinPath(run_, name); }
  std::vector<std::string> Names() { return *ListDirectory(run_); }
  static absl::Status Write(const std::string& folder, const std::string& content) {
    RETURN_IF_ERROR(WriteNewFile(JoinPath(folder, "model.safetensors"), content));
    return WriteNewFile(JoinPath(folder, "config.json"), "{}");
  }
  absl::Status Save(int64_t step, const std::string& content = "weights", int keep = 2) {
    return SaveCheckpoint(
        run_, step, [&](const std::string& folder) { return Write(folder, content); }, keep);
  }
  // Step of the checkpoint that a run would go on from; -1 none, -2 an error.
  int64_t Newest() {
    std::vector<std::string> skipped;
    const auto found = FindCheckpoint(run_, &skipped);
    if (!found.ok()) return -2;
    return found->empty() ? -1 : std::stoll(found->substr(found->rfind('-') + 1));
  }

  const TestFolder own_;
  const std::string run_ = own_.path();
};

TEST_F(CheckpointTest, SavesAndFindsTheNewest) {
  EXPECT_EQ(Newest(), -1);
  for (const int64_t step : {5, 10, 15, 123456789}) ASSERT_TRUE(Save(step).ok());
  EXPECT_THAT(Names(), ElementsAre("step-00000015", "step-123456789"));
  EXPECT_EQ(Newest(), 123456789);
  std::vector<std::string> skipped;
  EXPECT_EQ(*FindCheckpoint(run_, &skipped), Path("step-123456789"));
  EXPECT_EQ(*ReadFile(Path("step-123456789/model.safetensors"), 100), "weights");
  EXPECT_TRUE(VerifyCheckpoint(Path("step-00000015")).ok());
}

TEST_F(CheckpointTest, EveryTruncationAndByteFlipIsDetected) {
  ASSERT_TRUE(Save(7, std::string("\0\1\2weights\xFF", 11)).ok());
  const std::string folder = Path("step-00000007");
  int cases = 0;
  for (const std::string name : {"model.safetensors", "config.json", "MANIFEST"}) {
    const std::string path = JoinPath(folder, name), good = *ReadFile(path, 1 << 20);
    const auto detects = [&](const std::string& content) {
      ::unlink(path.c_str());  // truncating would wait for the disk
      std::ofstream(path) << content;
      ++cases;
      return ExitOf(VerifyCheckpoint(folder)) == Exit::kMismatch;
    };
    for (size_t n = 0; n < good.size(); ++n)
      EXPECT_TRUE(detects(good.substr(0, n))) << name << " cut at " << n;
    EXPECT_TRUE(detects(good + "\n")) << name;
    for (size_t i = 0; i < good.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = good;
        bad[i] ^= 1 << bit;
        EXPECT_TRUE(detects(bad)) << name << " byte " << i << " bit " << bit;
      }
    }
    ::unlink(path.c_str());
    std::ofstream(path) << good;
    EXPECT_TRUE(VerifyCheckpoint(folder).ok());
    std::filesystem::rename(path, Path("aside"));
    EXPECT_EQ(ExitOf(VerifyCheckpoint(folder)), Exit::kMismatch) << name << " missing";
    std::filesystem::create_directory(path);
    EXPECT_EQ(ExitOf(VerifyCheckpoint(folder)), Exit::kMismatch) << name << " is a folder";
    std::filesystem::remove(path);
    std::filesystem::rename(Path("aside"), path);
  }
  EXPECT_GT(cases, 1000);
  std::filesystem::rename(folder, Path("step-00000008"));
  EXPECT_THAT(
      std::string(VerifyCheckpoint(Path("step-00000008")).message()), HasSubstr("is of step 7"));
}

TEST_F(CheckpointTest, FallsBackToAnOlderOneAndSaysWhy) {
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(Save(2).ok());
  std::filesystem::resize_file(Path("step-00000002/model.safetensors"), 3);
  std::filesystem::create_directory(Path("step-00000009"));  // not ours
  std::vector<std::string> skipped;
  const auto found = FindCheckpoint(run_, &skipped);
  ASSERT_TRUE(found.ok() && !found->empty()) << found.status();
  EXPECT_EQ(*found, Path("step-00000001"));
  ASSERT_EQ(skipped.size(), 2);
  EXPECT_THAT(skipped[0], ::testing::StartsWith("skipped step-00000009: "));
  EXPECT_THAT(skipped[1], HasSubstr("model.safetensors: 3 bytes, but 7 were written"));
  std::filesystem::resize_file(Path("step-00000001/config.json"), 0);
  const absl::Status status = FindCheckpoint(run_, &skipped).status();
  EXPECT_EQ(ExitOf(status), Exit::kMismatch);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step-00000001"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("step-00000002"));
}

TEST_F(CheckpointTest, ErrorsOfTheSystemAreNotDamage) {
  ASSERT_TRUE(Save(3).ok());
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = VerifyCheckpoint(Path("step-00000003"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(ExitOf(status), Exit::kIo) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Too many open files"));
  EXPECT_TRUE(VerifyCheckpoint(Path("step-00000003")).ok());
  std::filesystem::remove(Path("step-00000003/model.safetensors"));
  EXPECT_EQ(ExitOf(VerifyCheckpoint(Path("step-00000003"))), Exit::kMismatch);
}

TEST_F(CheckpointTest, RotationCountsOnlySoundOnesAndTouchesNothingElse) {
  for (int64_t step = 1; step <= 3; ++step) ASSERT_TRUE(Save(step, "w", 5).ok());
  std::filesystem::resize_file(Path("step-00000003/model.safetensors"), 0);
  std::filesystem::create_directory(Path("step-00000000"));
  std::ofstream(Path("step-00000000/mine")) << "x";
  std::ofstream(Path("step-00000001/note")) << "x";
  std::ofstream(Path("step-00000000.txt")) << "x";
  ASSERT_TRUE(Save(4, "w", 2).ok());
  auto names = Names();
  ASSERT_EQ(names.size(), 6) << ::testing::PrintToString(names);
  EXPECT_THAT(names[0],
      HasSubstr(
          "left-step-00000001-"));  // lost its own files, kept the note that somebody put there
  EXPECT_THAT(*ListDirectory(Path(names[0])), ElementsAre("note"));
  EXPECT_TRUE(PathExists(Path("step-00000000/mine")));
  EXPECT_TRUE(PathExists(Path("step-00000002")));
  EXPECT_TRUE(PathExists(Path("step-00000003")));
  EXPECT_EQ(Newest(), 4);
}

// The run went on from step 2: those after it are damaged, although their sizes are right.
TEST_F(CheckpointTest, RotationDoesNotCountLaterOnes) {
  for (const int64_t step : {1, 2, 8, 9}) ASSERT_TRUE(Save(step, "weights", 5).ok());
  for (const char* damaged : {"step-00000008", "step-00000009"})
    std::ofstream(Path(std::string(damaged) + "/model.safetensors")) << "wrongly";
  EXPECT_EQ(Newest(), 2);
  ASSERT_TRUE(Save(3).ok());
  EXPECT_TRUE(PathExists(Path("step-00000002")));
  EXPECT_TRUE(PathExists(Path("step-00000003")));
  EXPECT_FALSE(PathExists(Path("step-00000001")));
  EXPECT_EQ(Newest(), 3);
}

TEST_F(CheckpointTest, ReplacesADamagedOneOfTheSameStepOnly) {
  ASSERT_TRUE(Save(1, "first").ok());
  ASSERT_TRUE(Save(1, "second").ok());
  EXPECT_EQ(*ReadFile(Path("step-00000001/model.safetensors"), 100), "first");
  std::filesystem::resize_file(Path("step-00000001/model.safetensors"), 1);
  ASSERT_TRUE(Save(1, "third").ok());
  EXPECT_EQ(*ReadFile(Path("step-00000001/model.safetensors"), 100), "third");
  const auto names = Names();
  ASSERT_EQ(names.size(), 2);
  EXPECT_THAT(names[0], HasSubstr("broken-step-00000001-"));
}

TEST_F(CheckpointTest, AFailureLeavesEverythingAsItWas) {
  ASSERT_TRUE(Save(1).ok());
  const absl::Status failed = SaveCheckpoint(
      run_, 2,
      [&](const std::string& folder) {
        EXPECT_TRUE(Write(folder, "half").ok());
        return Error(Exit::kIo, "disk full");
      },
      2);
  EXPECT_EQ(ExitOf(failed), Exit::kIo);
  EXPECT_THAT(Names(), ElementsAre("step-00000001"));
  const absl::Status folder = SaveCheckpoint(
      run_, 2, [&](const std::string& f) { return MakeDirectories(JoinPath(f, "sub")); }, 2);
  EXPECT_FALSE(folder.ok());
  const absl::Status space = SaveCheckpoint(
      run_, 2, [](const std::string&) { return absl::OkStatus(); }, 2, int64_t{1} << 60);
  EXPECT_EQ(ExitOf(space), Exit::kIo);
  EXPECT_THAT(std::string(space.message()), HasSubstr("MB free"));
  EXPECT_EQ(Newest(), 1);
  EXPECT_EQ(ExitOf(SaveCheckpoint(
                Path("nowhere"), 2, [](const std::string&) { return absl::OkStatus(); }, 2)),
      Exit::kIo);
}

// Writes fail from byte `limit` of any file on.
TEST_F(CheckpointTest, EveryFailingWriteKeepsTheOldCheckpoint) {
  ASSERT_TRUE(Save(1).ok());
  struct rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  int failures = 0;
  for (rlim_t limit = 0; limit < 300; limit += limit < 8 ? 1 : 9) {
    const struct rlimit low = {limit, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
    const absl::Status status = Save(2);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    if (status.ok()) break;
    ++failures;
    EXPECT_EQ(ExitOf(status), Exit::kIo) << limit;
    EXPECT_THAT(Names(), ElementsAre("step-00000001"));
    EXPECT_EQ(Newest(), 1);
  }
  ::signal(SIGXFSZ, handler);
  EXPECT_GT(failures, 15);
  EXPECT_EQ(Newest(), 2);
}

TEST_F(CheckpointTest, KillAtAnyMomentKeepsWhatWasAnnounced) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t s = 1; s <= 4; ++s) ASSERT_TRUE(Save(s, std::string(20000, 'w')).ok());
  const int save_us =
      static_cast<int>((std::chrono::steady_clock::now() - start) / std::chrono::microseconds(4));
  int64_t step = 4;
  for (int i = 0; i < 30; ++i) {  // instants all over the first saves
    const int kill_after_us = save_us * i / 10;
    int channel[2];
    ASSERT_EQ(::pipe(channel), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(channel[0]);
      for (int64_t s = step + 1;; ++s) {
        if (!Save(s, std::string(20000, 'w')).ok() ||
            ::write(channel[1], &s, sizeof(s)) != sizeof(s))
          ::_exit(1);
      }
    }
    ::close(channel[1]);
    int64_t announced = step, s = 0;
    if (i % 3 == 0) {  // it gets on, however slow the disk
      EXPECT_EQ(::read(channel[0], &announced, sizeof(announced)), sizeof(announced));
    }
    ::usleep(kill_after_us);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    while (::read(channel[0], &s, sizeof(s)) == sizeof(s)) announced = s;
    ::close(channel[0]);
    const int64_t found = std::max<int64_t>(Newest(), 0);
    EXPECT_GE(found, announced);
    EXPECT_LE(found, announced + 1);
    step = found;
    RemoveLeftovers(run_);
    for (const std::string& name : Names())
      EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  }
  EXPECT_GT(step, 10);  // it did get on meanwhile
}

TEST_F(CheckpointTest, RemovesOnlyLeftoversOfTheDead) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const std::string gone = absl::StrCat("step-00000001.tmp-", dead),
                    alive = absl::StrCat("step-00000001.tmp-", ::getppid());
  std::filesystem::create_directory(Path("target"));
  std::ofstream(Path("target/precious")) << "x";
  const std::string link = absl::StrCat("step-00000002.tmp-", dead);
  std::filesystem::create_directory_symlink(Path("target"), Path(link));
  const std::vector<std::string> kept = {alive,
      absl::StrCat("step-00000001.tmp-", dead, "-zzzzzzzz"), absl::StrCat("step-1.tmp-", dead),
      "x.tmp-1-0123abcd"};
  for (const std::string& name : kept) std::filesystem::create_directory(Path(name));
  std::filesystem::create_directory(Path(gone));
  std::ofstream(Path(gone) + "/model.safetensors") << "half";
  const std::string spec = absl::StrCat("spec.textproto.tmp-", dead),
                    foreign = absl::StrCat("notes.tmp-", dead);
  std::ofstream(Path(spec)) << "half";
  std::ofstream(Path(foreign)) << "x";
  RemoveLeftovers(run_);
  EXPECT_FALSE(PathExists(Path(gone)));
  EXPECT_FALSE(PathExists(Path(spec)));
  EXPECT_TRUE(PathExists(Path(foreign)));
  EXPECT_TRUE(PathExists(Path("target/precious")));
  for (const std::string& name : kept) EXPECT_TRUE(PathExists(Path(name))) << name;
}

TEST(SaveModelTest, RemovesWhatOnlyTheOldModelHad) {
  const TestFolder folder;
  const auto save = [&](int64_t step, const std::string& name) {
    return SaveModel(folder.path(), step,
        [&](const std::string& to) { return WriteNewFile(JoinPath(to, name), "x"); });
  };
  ASSERT_TRUE(save(1, "adapter_config.json").ok());
  ASSERT_TRUE(WriteNewFile(JoinPath(folder.path(), "mine"), "x").ok());
  ASSERT_TRUE(save(2, "model.safetensors").ok());
  EXPECT_THAT(
      *ListDirectory(folder.path()), testing::ElementsAre("MANIFEST", "mine", "model.safetensors"));
}

}  // namespace
}  // namespace cloze
