#include "tasks/run/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RunLockTest, AllowsOneProcessInADirectory) {
  const TestFolder folder;
  const std::string& run = folder.path();
  {
    auto lock = RunLock::Acquire(run);
    ASSERT_TRUE(lock.ok()) << lock.status();
    const RunLock moved = *std::move(lock);
    const absl::Status second = RunLock::Acquire(run).status();
    EXPECT_EQ(ExitOf(second), Exit::kCannotCreate);
    EXPECT_THAT(std::string(second.message()), HasSubstr("another process"));
  }
  EXPECT_TRUE(RunLock::Acquire(run).ok());
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = RunLock::Acquire(run);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char x = 0;
  ASSERT_EQ(::read(ready[0], &x, 1), 1);
  EXPECT_EQ(ExitOf(RunLock::Acquire(run).status()), Exit::kCannotCreate);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunLock::Acquire(run).ok());  // dies with the process
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(ExitOf(RunLock::Acquire("/proc/nowhere").status()), Exit::kCannotCreate);
  {
    auto lock = RunLock::Acquire(JoinPath(run, "a/b/c/"));
    ASSERT_TRUE(lock.ok()) << lock.status();
    std::ofstream(JoinPath(run, "a/mine")) << "x";
    lock->Undo();
    EXPECT_THAT(*ListDirectory(JoinPath(run, "a")), ElementsAre("mine"));
  }
}

TEST(RunFolderTest, RefusesWhatOthersHaveWritten) {
  const auto open = [](const std::string& directory) {
    TaskSpec spec;
    spec.set_seed(7);
    spec.mutable_output()->set_directory(directory);
    return ExitOf(RunFolder::Open(spec).status());
  };
  for (const char* name : {"config.json", "model.safetensors.index.json",
           "adapter_model.safetensors", "seed-3", "sweep.json", kSpecName}) {
    const TestFolder folder;
    std::ofstream(JoinPath(folder.path(), name)) << "x";
    EXPECT_EQ(open(folder.path()), Exit::kCannotCreate) << name;
    EXPECT_THAT(*ListDirectory(folder.path()), ElementsAre(name));
  }
  const TestFolder start;
  TaskSpec spec;
  spec.mutable_model()->set_start_from(start.path());
  spec.mutable_output()->set_directory(start.path() + "/./");
  EXPECT_EQ(ExitOf(RunFolder::Open(spec).status()), Exit::kCannotCreate);
  const TestFolder run;
  std::ofstream(JoinPath(run.path(), "config.json")) << "x";
  std::ofstream(JoinPath(run.path(), kSpecName)) << PrintEffective(spec);
  EXPECT_EQ(open(run.path()), Exit::kOk);
  const TestFolder edited;
  for (const char* name : {kSpecName, kLogName})
    std::ofstream(JoinPath(edited.path(), name)) << "x";
  EXPECT_EQ(open(edited.path()), Exit::kOk);
}

TEST(RunFolderTest, FindsTheSpecOfARunAndOfItsCheckpoints) {
  const TestFolder folder;
  const std::string run = JoinPath(folder.path(), "run"), step = JoinPath(run, "step-00000012"),
                    other = JoinPath(run, "model");
  for (const std::string& name : {step, other}) ASSERT_TRUE(MakeDirectories(name).ok());
  EXPECT_EQ(SpecOfRun(run), "");
  std::ofstream(JoinPath(run, kSpecName)) << "x";
  EXPECT_EQ(SpecOfRun(run), JoinPath(run, kSpecName));
  EXPECT_EQ(SpecOfRun(step + "/"), JoinPath(run, kSpecName));
  EXPECT_EQ(SpecOfRun(other), "");
}

}  // namespace
}  // namespace cloze
