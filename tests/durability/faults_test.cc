// Every file operation of a save fails once, in each way: the newest checkpoint that verifies
// loads, the error says what happened, and the same command later ends with the bits of a run to
// which nothing happened.
#include "tests/durability/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "tasks/jobs/verify.h"
#include "tasks/run/checkpoint.h"
#include "tests/durability/runs.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kSteps = 3;

// A run whose second step is saved, and which then meets a fault while step 3, the last and the
// best, is evaluated and saved.
class FaultsTest : public RunsTest {
 protected:
  FaultsTest() {
    spec_ = Spec("run", false, kSteps,
        absl::StrCat("validation { files: '", Path("text.txt"),
            "' } evaluation { every_steps: 2 } optimizer { learning_rate: 0.01 }"));
    std::atomic<bool> stop = false;
    EXPECT_EQ(
        ExitOf(Train(spec_, {.stop = &stop, .after_step = [&](int64_t step) { stop = step == 2; }})
                   .status()),
        Exit::kInterrupted);
    std::filesystem::copy(Path("run"), Path("begun"), std::filesystem::copy_options::recursive);
    EXPECT_TRUE(Train(spec_).ok());
    bits_ = Bits("run", kSteps);
  }

  void Begin() {
    std::filesystem::remove_all(Path("run"));
    std::filesystem::copy(Path("begun"), Path("run"), std::filesystem::copy_options::recursive);
  }
  absl::Status Meet(int64_t at, Fault fault) {
    Begin();
    const absl::Status status =
        Train(spec_, {.after_step = [&](int64_t) { ArmFaults(Path("run"), at, fault); }}).status();
    calls_ = DisarmFaults();
    return status;
  }
  // Step of the newest sound checkpoint.
  int64_t Newest() {
    std::vector<std::string> skipped;
    const auto found = FindCheckpoint(Path("run"), &skipped);
    EXPECT_TRUE(found.ok() && !found->empty()) << found.status();
    return found.ok() && !found->empty() ? std::stoll(found->substr(found->rfind('-') + 1)) : -1;
  }
  // The same command once more.
  void GoesOn(const std::string& what) {
    const auto summary = Train(spec_);
    EXPECT_TRUE(summary.ok()) << what << ": " << summary.status();
    EXPECT_TRUE(Bits("run", kSteps) == bits_) << what;
    const auto verdicts = VerifyRun(Path("run"));
    ASSERT_TRUE(verdicts.ok());
    for (const Verdict& verdict : *verdicts)
      EXPECT_TRUE(verdict.status.ok() && verdict.manifest) << what << ": " << verdict.status;
    const std::vector<std::string> names = ListDirectory(Path("run")).value();
    for (const std::string& name : names) EXPECT_THAT(name, Not(HasSubstr(".tmp-"))) << what;
  }

  LoadedSpec spec_;
  std::string bits_;
  std::vector<FileCall> calls_;
};

TEST_F(FaultsTest, EveryCallFailsOnce) {
  ASSERT_TRUE(Meet(0, Fault::kNone).ok());
  std::vector<FileCall> all = std::move(calls_);
  std::erase_if(all, [](const FileCall& call) { return call.name == "say"; });
  ASSERT_GT(all.size(), 60);
  int errors = 0, cases = 0;
  for (size_t n = 1; n <= all.size(); ++n) {
    const std::string& name = all[n - 1].name;
    for (const Fault fault : {Fault::kNoSpace, Fault::kIo, Fault::kShort}) {
      if (fault == Fault::kShort ? name != "write"
                                 : fault == Fault::kNoSpace &&
                                       (name == "close" || name == "unlink" || name == "rmdir"))
        continue;
      const std::string what = absl::StrCat(
          "call ", n, ", ", name, " ", all[n - 1].path, ", fault ", static_cast<int>(fault));
      const absl::Status status = Meet(n, fault);
      ++cases;
      const int64_t newest = Newest();
      if (status.ok()) {
        EXPECT_EQ(newest, kSteps) << what;
      } else {
        ++errors;
        EXPECT_EQ(ExitOf(status), Exit::kIo) << what << ": " << status;
        EXPECT_THAT(std::string(status.message()),
            testing::AllOf(HasSubstr(Path("run")),
                testing::AnyOf(HasSubstr("No space left"), HasSubstr("Input/output"))))
            << what;
      }
      EXPECT_TRUE(newest == kSteps || said_.find("saved") == std::string::npos) << what;
      GoesOn(what);
    }
  }
  RecordProperty("cases", cases);
  EXPECT_GT(errors, 100) << "of " << cases;
}

TEST_F(FaultsTest, KilledBeforeEveryCall) {
  ASSERT_TRUE(Meet(0, Fault::kNone).ok());
  const int64_t calls = calls_.size();
  for (int64_t n = 1; n < calls; ++n) {  // the announcement was not counted
    Begin();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Train(spec_, {.after_step = [&](int64_t) { ArmFaults(Path("run"), n, Fault::kKill); }})
          .status()
          .IgnoreError();
      ::_exit(1);
    }
    int result = 0;
    ::waitpid(child, &result, 0);
    EXPECT_TRUE(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL) << n;
    EXPECT_GE(Newest(), 2) << n;
    GoesOn(absl::StrCat("killed before call ", n));
  }
}

TEST_F(FaultsTest, SavedIsSaidAfterTheLastFsync) {
  ASSERT_TRUE(Meet(0, Fault::kNone).ok());
  std::set<std::string> unsynced;
  bool renamed = false, durable = false, said = false;
  for (const FileCall& call : calls_) {
    const bool checkpoint = call.path.find("/step-00000003") != std::string::npos;
    if (call.name == "say") {
      said = true;
      EXPECT_TRUE(durable);
      break;
    }
    if (call.name == "write" && checkpoint) unsynced.insert(call.path);
    if (call.name == "fsync") unsynced.erase(call.path);
    if (call.name == "rename" && call.path == Path("run/step-00000003")) {
      EXPECT_THAT(unsynced, testing::IsEmpty());
      renamed = true;
    }
    if (call.name == "fsync" && call.path == Path("run")) durable = renamed;
  }
  EXPECT_TRUE(said);
}

TEST_F(FaultsTest, FsyncReachesEveryFileAndTheFolderBeforeItsName) {
  ArmFaults(Path("begun"), 0, Fault::kNone);
  const absl::Status saved = SaveCheckpoint(
      Path("begun"), 9,
      [](const std::string& folder) {
        std::ofstream(JoinPath(folder, "model.safetensors")) << "weights";  // without fsync
        return absl::OkStatus();
      },
      /*keep=*/5);
  std::set<std::string> synced;
  bool named = false;
  for (const FileCall& call : DisarmFaults()) {
    if (call.name == "fsync") synced.insert(call.path);
    if (call.name != "rename" || named) continue;
    named = true;
    const std::string folder = absl::StrCat(call.path, ".tmp-", ::getpid());
    EXPECT_THAT(synced, testing::IsSupersetOf({folder, JoinPath(folder, "model.safetensors"),
                            JoinPath(folder, "MANIFEST")}));
  }
  EXPECT_TRUE(saved.ok() && named) << saved;
}

// The MANIFEST is replaced twice: by a mark before the first file, which is durable then, and by
// the new one after the last.
TEST_F(FaultsTest, TheModelsManifestIsOnlyThereWithAllItsFiles) {
  ASSERT_TRUE(Meet(0, Fault::kNone).ok());
  bool manifest = true, durable = true;
  int moved = 0;
  for (const FileCall& call : calls_) {
    const bool of_model =
        DirectoryOf(call.path) == Path("run") && call.path.find("/step-") == std::string::npos;
    if (call.name == "fsync" && call.path == Path("run")) durable = true;
    if (call.name != "rename" || !of_model) continue;
    if (call.path == Path("run/MANIFEST")) {
      EXPECT_TRUE(durable) << "its files may get lost";
      manifest = !manifest;
      durable = manifest;
    } else {
      EXPECT_FALSE(manifest) << call.path << " was replaced under the old MANIFEST";
      EXPECT_TRUE(durable || moved > 0) << "the mark may get lost";
      durable = false;
      ++moved;
    }
  }
  EXPECT_GT(moved, 3);
  EXPECT_TRUE(manifest);
}

TEST_F(FaultsTest, AnErrorInTheFinalVerificationIsNotDamage) {
  for (const char* name : {"run/MANIFEST", "run/model.safetensors"}) {
    for (const auto& fault : {std::pair("open to read", EIO), std::pair("open to read", EMFILE),
             std::pair("read", EIO)}) {
      Begin();
      const auto fail = [&](int64_t) {
        ArmFaults(Path("run"), 0, Fault::kNone);
        SetFaultHook([&](const FileCall& call) {
          return call.name == fault.first && call.path == Path(name) ? fault.second : 0;
        });
      };
      const absl::Status status = Train(spec_, {.after_step = fail}).status();
      DisarmFaults();
      ExpectError(status, Exit::kIo, std::strerror(fault.second));
      EXPECT_EQ(status.message().find("train again"), std::string::npos) << status;
      EXPECT_TRUE(Bits("run", kSteps) == bits_) << name;
      GoesOn(name);
    }
  }
}

TEST_F(FaultsTest, ADamagedNewCheckpointRemovesNoOlderOne) {
  const auto save = [&](int64_t step) {
    return SaveCheckpoint(
        Path("begun"), step,
        [](const std::string& folder) {
          return WriteNewFile(JoinPath(folder, "model.safetensors"), "weights");
        },
        /*keep=*/1);
  };
  ASSERT_TRUE(save(7).ok());
  ArmFaults(Path("begun"), 0, Fault::kNone);
  SetFaultHook([&](const FileCall& call) {  // when the new one has its name
    if (call.name == "fsync" && call.path == Path("begun"))
      std::ofstream(Path("begun/step-00000008/model.safetensors")) << "Weights";
    return 0;
  });
  EXPECT_TRUE(save(8).ok());
  DisarmFaults();
  EXPECT_TRUE(VerifyCheckpoint(Path("begun/step-00000007")).ok());
  EXPECT_FALSE(VerifyCheckpoint(Path("begun/step-00000008")).ok());
}

// A run whose best model is not the last: the labels that it is evaluated on are wrong.
class BestModelTest : public RunsTest {
 protected:
  BestModelTest() {
    std::string swapped = "text\tlabel\n";
    for (int i = 0; i < 40; ++i)
      swapped += i % 2 == 0 ? "the cat sat on mat\tdog\n" : "a dog ran to box\tcat\n";
    Write("swapped.tsv", swapped);
    const auto clean = Train(Best("clean"));
    EXPECT_TRUE(clean.ok()) << clean.status();
    const std::string metrics = Read(Path("clean/metrics.json"));
    best_ = std::atoi(metrics.substr(metrics.find("\"step\":") + 7).c_str());
    EXPECT_TRUE(best_ > 0 && best_ < 8) << metrics;
  }
  LoadedSpec Best(const std::string& run) {
    LoadedSpec spec = Spec(run, true, 10, "optimizer { learning_rate: 0.01 }");
    spec.spec.mutable_validation()->set_files(0, Path("swapped.tsv"));
    spec.spec.mutable_output()->set_checkpoint_every_steps(10);
    return spec;
  }
  // Trains while no model can be saved from the best one on to the end of step `until`.
  absl::StatusOr<Trainer::Summary> TrainWithFaults(const LoadedSpec& spec, int64_t until) {
    const std::string run = spec.spec.output().directory();
    const auto arm = [=, this](int64_t step) {
      if (step == best_) {
        ArmFaults(run, 0, Fault::kNone);
        SetFaultHook([=](const FileCall& call) {
          return call.name == "rename" && call.path == run + "/config.json" ? EIO : 0;
        });
      }
      if (step == until) DisarmFaults();
    };
    auto summary = Train(spec, {.after_step = arm});
    DisarmFaults();
    return summary;
  }
  int64_t best_ = 0;  // its step
};

TEST_F(BestModelTest, IsSavedWhenTheDiskWorksAgain) {
  for (const int64_t until : {best_ + 1, best_ + 3}) {
    const std::string run = absl::StrCat("run", until);
    const auto summary = TrainWithFaults(Best(run), until);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_THAT(said_, testing::AllOf(HasSubstr("cannot save the best model: "),
                           HasSubstr(absl::StrCat("wrote the best model, of step ", best_))));
    EXPECT_TRUE(Bits(run, 10) == Bits("clean", 10)) << until;
  }
}

TEST_F(BestModelTest, IsNamedByTheLastLineIfItCannotBeSaved) {
  const absl::Status status = TrainWithFaults(Best("run"), 100).status();
  ExpectError(
      status, Exit::kIo, absl::StrCat("cannot save: the best model, of step ", best_, ": "));
  EXPECT_FALSE(PathExists(Path("run/step-00000010"))) << "a resumed run would not find the model";
  ASSERT_TRUE(Train(Best("run")).ok());
  EXPECT_TRUE(Bits("run", 10) == Bits("clean", 10));
}

// Three saves that fail end the run; one that fails does not.
TEST_F(FaultsTest, GoesOnWithoutACheckpointAndGivesUpAfterThree) {
  constexpr int64_t kMakeFolder = 2;  // the first call unlinks a leftover; its failure is ignored
  LoadedSpec longer = Spec("longer", false, 6);
  int64_t saves = 0;
  const auto no_space = [&](int64_t step) {
    if (step == 2) {
      ArmFaults(Path("longer/step-00000002"), kMakeFolder, Fault::kNoSpace);
    } else if (step == 3) {
      saves = DisarmFaults().size();
    }
  };
  const auto summary = Train(longer, {.after_step = no_space});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(saves, 0);
  EXPECT_THAT(said_, HasSubstr("cannot save: "));
  EXPECT_THAT(said_, HasSubstr("No space left on device; training continues"));

  std::filesystem::remove_all(Path("longer"));
  const auto never = [&](int64_t step) {
    ArmFaults(absl::StrFormat("%s/step-%08d", Path("longer"), step), kMakeFolder, Fault::kIo);
  };
  const absl::Status status = Train(longer, {.after_step = never}).status();
  DisarmFaults();
  ExpectError(status, Exit::kIo, "cannot save");
  EXPECT_THAT(std::string(status.message()), HasSubstr("step-00000003"));
}

// A file or folder whose directory cannot be made durable is an error, and leaves nothing.
class UnsyncedTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return JoinPath(folder_.path(), name); }
  // Fails to open or to fsync the directory.
  void Arm(const char* name) {
    ArmFaults(folder_.path(), 0, Fault::kNone);
    SetFaultHook([this, name](const FileCall& call) {
      return call.name == name && call.path == folder_.path() ? EIO : 0;
    });
  }
  const TestFolder folder_;
};

TEST_F(UnsyncedTest, ANewFileIsGone) {
  Arm("fsync");
  const auto write = [](const std::string& name) { return WriteNewFile(name, "new"); };
  const absl::Status fresh = ReplaceFile(Path("a"), write, /*replace=*/false);
  DisarmFaults();
  EXPECT_EQ(ExitOf(fresh), Exit::kIo);
  EXPECT_THAT(*ListDirectory(folder_.path()), testing::IsEmpty());
}

TEST_F(UnsyncedTest, ANewFolderIsGone) {
  {
    auto folder = AtomicFolder::Create(Path("a"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(WriteNewFile(JoinPath(folder->path(), "x"), "1").ok());
    Arm("fsync");
    EXPECT_EQ(ExitOf(folder->Commit()), Exit::kIo);
    DisarmFaults();
  }
  EXPECT_THAT(*ListDirectory(folder_.path()), testing::IsEmpty());
}

}  // namespace
}  // namespace cloze
