// Tensors of type I8 with scales.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/tensor/safetensors.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Int8Tensors : public ::testing::Test {
 protected:
  // Writes w [2, 3] as I8 with these scales, if there are any, and reads it.
  absl::Status Read(const std::vector<float>& scales, const std::vector<int64_t>& shape) {
    const int8_t q[] = {1, -127, 3, 0, 5, 127};
    std::vector<TensorData> tensors = {{"w", {2, 3}, FileType::kI8, q}};
    std::vector<Bf16> bits;  // exact for these scales; f32 would not be written if not finite
    for (const float scale : scales)
      bits.push_back({static_cast<uint16_t>(std::bit_cast<uint32_t>(scale) >> 16)});
    if (!scales.empty()) tensors.push_back({"w_scale", shape, FileType::kBf16, bits.data()});
    const std::string path = JoinPath(folder_.path(), "model.safetensors");
    EXPECT_TRUE(ReplaceSafetensors(path, tensors).ok());
    const auto reader = SafetensorsReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader->ReadF32("w", absl::MakeSpan(out_));
  }
  const TestFolder folder_;
  std::vector<float> out_ = std::vector<float>(6);
};

TEST_F(Int8Tensors, AreReadTimesTheScaleOfTheirRow) {
  ASSERT_TRUE(Read({0.5f, 2}, {2, 1}).ok());
  EXPECT_THAT(out_, ElementsAre(0.5f, -63.5f, 1.5f, 0, 10, 254));
  const auto reader = SafetensorsReader::Open(JoinPath(folder_.path(), "model.safetensors"));
  std::vector<float> row(3);
  ASSERT_TRUE(reader->ReadPartF32("w", 3, absl::MakeSpan(row)).ok());
  EXPECT_THAT(row, ElementsAre(0, 10, 254));
}

TEST_F(Int8Tensors, NeedOneSoundScaleForEachRow) {
  const auto expect = [](const absl::Status& status, const std::string& what) {
    EXPECT_EQ(ExitOf(status), Exit::kData);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  expect(Read({}, {}), "w_scale of shape [2, 1], found none");
  expect(Read({1, 1, 1}, {3, 1}), "w_scale of shape [2, 1], found [3, 1]");
  expect(Read({1, 1}, {2}), "found [2]");
  expect(Read({1, NAN}, {2, 1}), "w_scale");
  expect(Read({1, INFINITY}, {2, 1}), "w_scale");
  expect(Read({1, -1}, {2, 1}), "element 1 is -1: expected a scale");
  expect(Read({1, 2e38f}, {2, 1}), "infinite or too large");
}

TEST_F(Int8Tensors, OfOtherShapesAreRefused) {
  const int8_t q[] = {1, 2};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2}, {2, 0}, {1, 1, 2}}) {
    const std::string path = JoinPath(folder_.path(), "model.safetensors");
    ASSERT_TRUE(ReplaceSafetensors(path, {{"w", shape, FileType::kI8, q}}).ok());
    const auto reader = SafetensorsReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    out_.resize(reader->tensors()[0].elements());
    EXPECT_THAT(std::string(reader->ReadF32("w", absl::MakeSpan(out_)).message()),
        HasSubstr(": expected 2-D"));
  }
}

}  // namespace
}  // namespace cloze
