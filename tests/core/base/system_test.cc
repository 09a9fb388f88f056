#include "core/base/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(System, ReadsNumbersByLabel) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "status");
  ASSERT_TRUE(
      WriteNewFile(path, "200000 100000\nanon_thp 1\nanon\t 7 8 kB 9\nanon 10\nmax: max 3\n").ok());
  EXPECT_THAT(SystemNumbers(path), ElementsAre(200000, 100000));
  EXPECT_THAT(SystemNumbers(path, "anon"), ElementsAre(7, 8));
  EXPECT_THAT(SystemNumbers(path, "max:"), IsEmpty());
  EXPECT_EQ(SystemNumber(path, "anon"), 7);
  EXPECT_EQ(SystemNumber(path, "max:"), -1);
  EXPECT_EQ(SystemNumber(path, "none"), -1);
  EXPECT_EQ(SystemNumber(path + "-missing"), -1);
}

TEST(System, KnowsThisProcess) {
  EXPECT_EQ(SystemNumber("/proc/self/status", "Pid:"), ::getpid());
  EXPECT_GT(PeakMemory(), 1 << 20);
  EXPECT_GT(AvailableMemory(), 1 << 20);
  EXPECT_LT(AvailableMemory(), kUnlimited);
  EXPECT_EQ(ControlGroups("", "").back(), "/sys/fs/cgroup");
}

}  // namespace
}  // namespace cloze
