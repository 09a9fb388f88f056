#include "tools/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class ScratchFolderTest : public testing::Test {
 protected:
  ScratchFolderTest() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~ScratchFolderTest() override { ::unsetenv("TMPDIR"); }

  std::string Path(const std::string& name) const { return JoinPath(folder_.path(), name); }
  void MakeFolder(const std::string& name) {
    ASSERT_TRUE(MakeDirectories(Path(name + "/inner")).ok());
    ASSERT_TRUE(WriteNewFile(Path(name + "/inner/file"), "a").ok());
  }
  std::vector<std::string> Names() const { return *ListDirectory(folder_.path()); }

  const TestFolder folder_;
};

TEST_F(ScratchFolderTest, LeavesNothing) {
  {
    auto folder = ScratchFolder::Create();
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_THAT(folder->path(), StartsWith(Path(absl::StrCat("cloze.tmp-", ::getpid(), "-"))));
    struct stat info;
    ASSERT_EQ(::stat(folder->path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700);
    const ScratchFolder moved = *std::move(folder);
    ASSERT_TRUE(WriteNewFile(JoinPath(moved.path(), "file"), "a").ok());
    EXPECT_EQ(Names().size(), 1);
  }
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(ScratchFolderTest, TheNextOneRemovesThatOfAKilledProcess) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto folder = ScratchFolder::Create();
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
  ASSERT_EQ(Names().size(), 1);
  const auto folder = ScratchFolder::Create();
  ASSERT_TRUE(folder.ok());
  EXPECT_THAT(Names(), ElementsAre(BaseName(folder->path())));
}

// The number of a dead process may be that of another one now.
TEST_F(ScratchFolderTest, TheLockDecidesAndNotTheNumber) {
  MakeFolder("cloze.tmp-1-0123abcd");
  const auto first = ScratchFolder::Create(), second = ScratchFolder::Create();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(Names(), UnorderedElementsAre(BaseName(first->path()), BaseName(second->path())));
}

TEST_F(ScratchFolderTest, FoldersOfOthersAndLinksStay) {
  const std::vector<std::string> names = {"cloze.tmp-1", "cloze.tmp-1-0123abc", "cloze-Xy12ab",
      "cloze.tmp-x-0123abcd", "cloze.tmp-1-0123abcg", "cloze.tmp-1-0123abcd-2", "model"};
  for (const std::string& name : names) MakeFolder(name);
  std::filesystem::create_symlink(Path("model"), Path("cloze.tmp-2-0123abcd"));
  ASSERT_TRUE(WriteNewFile(Path("cloze.tmp-3-0123abcd"), "a file").ok());
  ASSERT_TRUE(ScratchFolder::Create().ok());
  EXPECT_EQ(Names().size(), names.size() + 2);
  for (const std::string& name : names) EXPECT_TRUE(PathExists(Path(name + "/inner/file")));
}

TEST(CheckExtension, KnownOnesAndNoneAreRight) {
  for (const char* name : {"a.npy", "A.NPY", "a", "-", ".npy", "x.d/a", "x.vec/a.npy"})
    EXPECT_TRUE(CheckExtension(name, {"npy", "vec"}).ok()) << name;
  for (const char* name : {"a.npz", "a.npy.gz", "npy.a"}) {
    const absl::Status status = CheckExtension(name, {"npy", "vec"}, ", or -");
    EXPECT_EQ(ExitOf(status), Exit::kUsage) << name;
    EXPECT_THAT(std::string(status.message()),
        HasSubstr(absl::StrCat(name, ": expected a name that ends in .npy or .vec, or -")));
  }
}

TEST(CheckFolderName, NamesOfFilesAreWrong) {
  for (const char* name : {"model", "bert-0.1", "roberta.base", "x.onnx/model", ""})
    EXPECT_TRUE(CheckFolderName(name).ok()) << name;
  for (const char* name : {"model.onnx", "a/vocab.txt", "m.safetensors"})
    EXPECT_EQ(ExitOf(CheckFolderName(name)), Exit::kUsage) << name;
}

}  // namespace
}  // namespace cloze
