// Model folders are loaded as they were saved, or not at all.
#include "core/manifest/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    Write("config.json", "{\"labels\": 2}");
    Write("merges.txt", "a b\nc d\n");
    Write("model.safetensors", "weights");
    Write("metrics.json", "{}");
    Write("optimizer.safetensors", "moments");
    EXPECT_TRUE(AddManifest(folder_, 7).ok());
  }
  std::string Path(const std::string& name) { return JoinPath(folder_, name); }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(Path(name), std::ios::binary) << content;
  }
  void ExpectRefused(const std::string& name, const std::string& why) {
    const absl::Status status = CheckFolder(folder_);
    EXPECT_EQ(ExitOf(status), Exit::kMismatch) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(name) + ": " + why));
    EXPECT_THAT(
        std::string(status.message()), HasSubstr("delete " + Path("MANIFEST") + " to accept"));
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
};

TEST_F(ManifestTest, NamesTheFileThatIsNotAsItWasSaved) {
  EXPECT_TRUE(CheckFolder(folder_).ok());
  for (const std::string name : {"config.json", "merges.txt", "model.safetensors"}) {
    const std::string good = *ReadFile(Path(name), 1 << 20);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] ^= 1;
      Write(name, bad);
      ExpectRefused(name, "damaged: its hash differs");
    }
    Write(name, good.substr(0, 4));
    ExpectRefused(name, absl::StrCat("4 bytes, but ", good.size(), " were written"));
    std::filesystem::remove(Path(name));
    ExpectRefused(name, "cannot open");
    Write(name, good);
  }
  EXPECT_TRUE(CheckFolder(folder_).ok());
}

TEST_F(ManifestTest, OtherFilesAndFoldersWithoutOneAreFree) {
  Write("README.md", "mine");
  std::filesystem::remove(Path("metrics.json"));
  std::filesystem::remove(Path("optimizer.safetensors"));
  EXPECT_TRUE(CheckFolder(folder_).ok());
  Write("config.json", "{}");
  ExpectRefused("config.json", "2 bytes");
  std::filesystem::remove(Path("MANIFEST"));
  EXPECT_TRUE(CheckFolder(folder_).ok());
}

TEST_F(ManifestTest, LargeWeightsAreComparedByLength) {
  const std::string large(kMaxHashedWeights + 1, 'x');
  std::filesystem::remove(Path("MANIFEST"));
  for (const char* name : {"model.safetensors", "merges.txt"}) Write(name, large);
  ASSERT_TRUE(AddManifest(folder_, 7).ok());
  Write("model.safetensors", "y" + large.substr(1));
  EXPECT_TRUE(CheckFolder(folder_).ok());
  EXPECT_FALSE(CheckFiles(folder_, *ReadManifest(folder_), /*hashes=*/true).ok());
  Write("model.safetensors", large + "y");
  ExpectRefused("model.safetensors", absl::StrCat(large.size() + 1, " bytes"));
  Write("model.safetensors", large);
  Write("merges.txt", "y" + large.substr(1));
  ExpectRefused("merges.txt", "damaged");
}

TEST_F(ManifestTest, HoldsAThousandFiles) {
  std::filesystem::remove(Path("MANIFEST"));
  int files = static_cast<int>(ListDirectory(folder_)->size());
  for (; files < 1000; ++files) Write(absl::StrCat("file", files), "x");
  ASSERT_TRUE(AddManifest(folder_, 7).ok());
  EXPECT_TRUE(CheckFolder(folder_).ok()) << CheckFolder(folder_);
  EXPECT_EQ(ExitOf(AddManifest(folder_, 7).status()), Exit::kLimit);  // MANIFEST is one more
}

TEST_F(ManifestTest, AnInterruptedSaveIsNamedAndARunningOneAwaited) {
  const std::string manifest = *ReadFile(Path("MANIFEST"), 1 << 20);
  ASSERT_TRUE(MarkReplaced(folder_).ok());
  const absl::Status status = CheckFolder(folder_);
  EXPECT_EQ(ExitOf(status), Exit::kMismatch);
  EXPECT_THAT(std::string(status.message()),
      HasSubstr("MANIFEST: its files are being replaced, or that was interrupted; resume the run, "
                "or use its newest checkpoint"));
  EXPECT_EQ(ExitOf(ReadManifest(folder_).status()), Exit::kMismatch);
  std::thread saving([&] { EXPECT_TRUE(WriteFileAtomically(Path("MANIFEST"), manifest).ok()); });
  EXPECT_TRUE(CheckFolder(folder_).ok());
  saving.join();
}

}  // namespace
}  // namespace cloze
