#include "tasks/console/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "proto/tensorboard.pb.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EventFileTest : public testing::Test {
 protected:
  std::string Bytes() { return *ReadFile(path_, 1 << 20); }
  void Add(int64_t after, int64_t from, int64_t to) {
    absl::StatusOr<EventFile> file = EventFile::Open(path_, after);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int64_t step = from; step <= to; ++step)
      ASSERT_TRUE(file->Add(step, {{"train/loss", 0.5 * step}}).ok());
  }
  // Reads the file as TensorBoard does; the first event is the version.
  std::vector<tensorboard::Event> Events() {
    const std::string bytes = Bytes();
    std::vector<tensorboard::Event> events;
    for (size_t at = 0; at < bytes.size();) {
      uint64_t size = 0;
      std::memcpy(&size, &bytes[at], 8);
      const std::string data = bytes.substr(at + 12, size), record = EventRecord(data);
      EXPECT_EQ(bytes.substr(at, record.size()), record);
      EXPECT_TRUE(events.emplace_back().ParseFromString(data));
      at += record.size();
    }
    EXPECT_EQ(events.at(0).file_version(), "brain.Event:2");
    return events;
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    for (const tensorboard::Event& event : Events()) {
      if (!event.has_summary()) continue;
      steps.push_back(event.step());
      EXPECT_EQ(event.summary().value(0).tag(), "train/loss");
      EXPECT_EQ(event.summary().value(0).simple_value(), 0.5f * event.step());
      EXPECT_GT(event.wall_time(), 1.7e9);
    }
    return steps;
  }

  const TestFolder own_;
  const std::string path_ = own_.path() + "/" + kEventsName;
};

// Bytes that TensorBoard's writer gives for a version event at time 1.
TEST_F(EventFileTest, ARecordHasTensorBoardsBytes) {
  const std::string record =
      EventRecord(absl::HexStringToBytes("09000000000000f03f1a0d627261696e2e4576656e743a32"));
  EXPECT_EQ(absl::BytesToHexString(record),
      "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
}

TEST_F(EventFileTest, AResumedRunReplacesLaterSteps) {
  Add(0, 1, 5);
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3, 4, 5));
  Add(3, 4, 4);
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3, 4));
  Add(0, 1, 0);
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(EventFileTest, ATornOrDamagedTailIsCutOff) {
  Add(0, 1, 2);
  const std::string whole = Bytes();
  Add(2, 3, 3);
  const std::string longer = Bytes();
  for (size_t size = whole.size(); size < longer.size(); ++size) {
    std::filesystem::resize_file(path_, size);
    Add(9, 4, 4);
    EXPECT_THAT(Steps(), ElementsAre(1, 2, 4)) << size;
    ASSERT_TRUE(WriteFileAtomically(path_, longer).ok());
  }
  for (size_t at = whole.size(); at < longer.size(); ++at) {
    std::string damaged = longer;
    damaged[at] ^= 0x80;
    ASSERT_TRUE(WriteFileAtomically(path_, damaged).ok());
    Add(9, 4, 4);
    EXPECT_THAT(Steps(), ElementsAre(1, 2, 4)) << at;
  }
}

TEST_F(EventFileTest, LinksAndFoldersAreRefused) {
  const std::string target = own_.path() + "/target";
  ASSERT_TRUE(WriteNewFile(target, "mine").ok());
  std::filesystem::create_symlink(target, path_);
  EXPECT_EQ(ExitOf(EventFile::Open(path_, 0).status()), Exit::kCannotCreate);
  EXPECT_EQ(*ReadFile(target, 100), "mine");
  EXPECT_FALSE(EventFile::Open(own_.path(), 0).ok());
}

}  // namespace
}  // namespace cloze
