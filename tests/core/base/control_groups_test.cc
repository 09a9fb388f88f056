#include "core/base/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/base/system.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;

// A machine whose files lie in a folder.
class ControlGroupsTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(MakeDirectories(DirectoryOf(root_ + path)).ok());
    ASSERT_TRUE(WriteFileAtomically(root_ + path, text).ok());
  }
  const TestFolder folder_;
  const std::string root_ = folder_.path(), groups_ = root_ + "/sys/fs/cgroup";
};

TEST_F(ControlGroupsTest, OfVersion2) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_THAT(ControlGroups("", root_), ElementsAre(groups_ + "/a/b", groups_ + "/a", groups_));
  EXPECT_EQ(MemoryOfGroups(root_), kUnlimited);
  EXPECT_EQ(CoresOfGroups(root_), 0);
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/memory.max", "1000\n");
  Write("/sys/fs/cgroup/a/memory.stat", "file 7\nanon 400\n");
  EXPECT_EQ(MemoryOfGroups(root_), 600);
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(CoresOfGroups(root_), 2.5);
}

TEST_F(ControlGroupsTest, OfVersion1) {
  Write("/proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/c\n1:name=systemd:/d\n0::/e\n");
  EXPECT_THAT(ControlGroups("memory", root_),
      ElementsAre(groups_ + "/memory/a/b", groups_ + "/memory/a", groups_ + "/memory"));
  EXPECT_THAT(ControlGroups("cpu", root_), ElementsAre(groups_ + "/cpu/c", groups_ + "/cpu"));
  Write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_GT(MemoryOfGroups(root_), int64_t{1} << 60);
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  Write("/sys/fs/cgroup/memory/a/memory.stat", "cache 900\nrss 1\ntotal_cache 5\ntotal_rss 300\n");
  EXPECT_EQ(MemoryOfGroups(root_), 700);
  // In a container the group of the host is not there: the mount point is the group.
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "200\n");
  EXPECT_EQ(MemoryOfGroups(root_), 200);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CoresOfGroups(root_), 0);
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "150000\n");
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CoresOfGroups(root_), 1.5);
}

}  // namespace
}  // namespace cloze
