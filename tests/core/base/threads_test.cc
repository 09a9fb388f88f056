#include "core/base/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace cloze {
namespace {

class ThreadsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { SetThreads(GetParam()); }
  void TearDown() override { SetThreads(0); }
};

TEST_P(ThreadsTest, EveryTaskRunsOnce) {
  EXPECT_EQ(Threads(), GetParam());
  for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> runs(tasks);
    ParallelFor(tasks, [&](int64_t i) { ++runs[i]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST_P(ThreadsTest, ChunksCoverTheRange) {
  for (const int64_t n : {0, 1, 9, 10, 11, 100}) {
    std::vector<std::atomic<int>> runs(n);
    ParallelChunks(n, 10, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 10, 0);
      EXPECT_TRUE(end == begin + 10 || end == n);
      EXPECT_LT(begin, end);
      for (int64_t i = begin; i < end; ++i) ++runs[i];
    });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST_P(ThreadsTest, NestedLoopsRunInline) {
  std::vector<std::atomic<int>> runs(64);
  ParallelFor(8, [&](int64_t i) {
    const int outer = ThreadIndex();
    EXPECT_LT(outer, Threads());
    ParallelFor(8, [&](int64_t j) {
      EXPECT_EQ(ThreadIndex(), outer);
      ++runs[i * 8 + j];
    });
  });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
}

INSTANTIATE_TEST_SUITE_P(Counts, ThreadsTest, testing::Values(1, 2, 5));

TEST(Threads, ChangingTheNumberEndsTheOldThreads) {
  const int before = Threads();
  std::atomic<int64_t> ran = 0;
  for (int i = 0; i < 300; ++i) {
    SetThreads(2 + i % 3);
    // Loops of different lengths, so that workers are told to end at different places.
    ParallelFor(
        2, [&](int64_t) { std::this_thread::sleep_for(std::chrono::microseconds(i)), ++ran; });
  }
  SetThreads(before);
  EXPECT_EQ(ran, 600);
}

int64_t SumOfLoop() {
  std::atomic<int64_t> sum = 0;
  ParallelFor(1000, [&](int64_t i) { sum += i; });
  return sum;
}

TEST(Threads, EndAndComeBack) {
  const int before = Threads();
  SetThreads(3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(SumOfLoop(), 499500);
    EndThreads();
    EndThreads();
  }
  SetThreads(before);
}

TEST(Threads, AForkHasThreadsOfItsOwn) {
  const int before = Threads();
  SetThreads(3);
  ASSERT_EQ(SumOfLoop(), 499500);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SumOfLoop() == 499500 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(SumOfLoop(), 499500);
  SetThreads(before);
}

TEST(Threads, TheNumberForLibrariesComesBack) {
  SetLibraryThreads(5);
  {
    const LibraryThreadsKept kept;
    SetLibraryThreads(1);
  }
  EXPECT_EQ(LibraryThreads(), 5);
}

TEST(Threads, DefaultIsWhatTheProcessMayUse) {
  EXPECT_GE(AvailableCores(), 1);
  SetThreads(0);
  EXPECT_EQ(Threads(), AvailableCores());
}

}  // namespace
}  // namespace cloze
