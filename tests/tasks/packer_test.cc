#include "tasks/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/status.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;

Example SequenceOf(int length) {
  Example example;
  example.ids.assign(length, 7);
  example.rows = {0};
  example.labels = {length};
  example.second = length;
  return example;
}

TEST(PackerTest, FillsBatchesUpToTheLimitAndPadsThem) {
  std::vector<std::vector<int32_t>> batches;  // the labels of each
  Packer packer(10, [&](const Batch& batch) {
    EXPECT_EQ(batch.padded_rows(), PaddedRows(batch.tokens()));
    batches.push_back(batch.targets);
    return absl::OkStatus();
  });
  for (const int length : {4, 6, 1, 30, 10, 3}) ASSERT_TRUE(packer.Add(SequenceOf(length), 0).ok());
  ASSERT_TRUE(packer.Finish().ok());
  ASSERT_TRUE(packer.Finish().ok()) << "an empty batch is not run";
  EXPECT_THAT(batches, ElementsAre(ElementsAre(4, 6), ElementsAre(1), ElementsAre(30),
                           ElementsAre(10), ElementsAre(3)));
}

TEST(PackerTest, ReturnsTheErrorOfARun) {
  Packer packer(4, [](const Batch&) { return Error(Exit::kInterrupted, "stopped"); });
  EXPECT_TRUE(packer.Add(SequenceOf(4), 0).ok());
  EXPECT_EQ(ExitOf(packer.Add(SequenceOf(1), 0)), Exit::kInterrupted);
}

}  // namespace
}  // namespace cloze
