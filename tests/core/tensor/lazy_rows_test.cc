#include "core/tensor/safetensors.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/tensor/half_values.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 10, kCols = 60;

class LazyRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    stored_.resize(kRows * kCols);
    std::iota(stored_.begin(), stored_.end(), 1);  // up to 600, which 16 bits hold well enough
  }
  void Store(FileType type) {
    std::filesystem::remove(Path());
    const auto bits = SixteenBits(stored_, type);
    const void* data =
        type == FileType::kF32 ? static_cast<const void*>(stored_.data()) : bits.data();
    ASSERT_TRUE(WriteSafetensors(
        Path(), {{"a", {3}, FileType::kF32, stored_.data()}, {"t", {kRows, kCols}, type, data}})
                    .ok());
  }
  LazyRows Open() {
    return LazyRows(
        *SafetensorsReader::OpenFolder(folder_), "t", View(table_.data(), kRows, kCols));
  }
  std::string Path() const { return folder_ + "/model.safetensors"; }
  // The rows that are there.
  std::vector<int> There() const {
    std::vector<int> rows;
    for (int r = 0; r < kRows; ++r) {
      bool all = true;
      for (int64_t i = r * kCols; i < (r + 1) * kCols; ++i)
        all &= std::fabs(table_[i] - stored_[i]) < 3;
      if (all) rows.push_back(r);
    }
    return rows;
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
  std::vector<float> stored_, table_ = std::vector<float>(kRows * kCols, -9);
};

TEST_F(LazyRowsTest, ReadsWhatIsWanted) {
  for (const FileType type : {FileType::kF32, FileType::kF16, FileType::kBf16}) {
    table_.assign(table_.size(), -9);
    Store(type);
    LazyRows rows = Open();
    EXPECT_TRUE(rows.Read({}).ok());
    EXPECT_THAT(There(), testing::IsEmpty());
    EXPECT_TRUE(rows.Read({7, 0, 7, 3}).ok());
    EXPECT_THAT(There(), testing::ElementsAre(0, 3, 7));
    table_[0] = -9;
    EXPECT_TRUE(rows.Read({0}).ok());
    EXPECT_EQ(table_[0], -9) << "read twice";
    table_[0] = 1;
    EXPECT_TRUE(rows.ReadAll().ok());
    EXPECT_EQ(There().size(), kRows);
  }
  LazyRows nothing;
  EXPECT_TRUE(nothing.Read({5, 100}).ok());
  EXPECT_TRUE(nothing.ReadAll().ok());
}

TEST_F(LazyRowsTest, FailsWhenTheFileIsCutShort) {
  Store(FileType::kF32);
  LazyRows rows = Open();
  std::filesystem::resize_file(Path(), std::filesystem::file_size(Path()) - 4);
  EXPECT_TRUE(rows.Read({8}).ok());
  EXPECT_EQ(ExitOf(rows.Read({9})), Exit::kData);
  EXPECT_EQ(ExitOf(rows.ReadAll()), Exit::kData);
}

TEST_F(LazyRowsTest, RefusesWhatIsNotFiniteWhereverItStands) {
  Store(FileType::kF32);
  const int64_t begin = std::filesystem::file_size(Path()) - kRows * kCols * 4;
  for (const float odd : {NAN, -std::numeric_limits<float>::infinity()}) {
    for (const int64_t i : {0, 59, 60, 255, 256, 511, 512, 599}) {
      Store(FileType::kF32);
      std::FILE* file = std::fopen(Path().c_str(), "r+b");
      std::fseek(file, begin + i * 4, SEEK_SET);
      std::fwrite(&odd, 4, 1, file);
      std::fclose(file);
      LazyRows one = Open(), all = Open();
      const int32_t row = i / kCols;
      EXPECT_TRUE(one.Read({(row + 1) % 10, (row + 9) % 10}).ok());
      for (const absl::Status& status : {one.Read({row}), all.ReadAll()}) {
        EXPECT_EQ(ExitOf(status), Exit::kData);
        EXPECT_THAT(std::string(status.message()),
            HasSubstr(absl::StrCat("tensor t: element ", i, " is ")));
      }
    }
  }
}

}  // namespace
}  // namespace cloze
