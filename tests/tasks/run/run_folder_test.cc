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

}  // namespace
}  // namespace cloze
