// Examples of several sequences that stay in one batch.
#include "tasks/batcher.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

// Splits each example into sequences of two tokens, all of one group.
class GroupObjective : public Objective {
 public:
  std::vector<Example> Sequences(Example example, double) const override {
    std::vector<Example> sequences;
    for (size_t i = 0; i < example.ids.size(); i += 2) {
      Example& sequence = sequences.emplace_back();
      sequence.ids = {example.ids[i], example.ids[i + 1]};
      sequence.second = 2;
      sequence.joined = i > 0;
    }
    return sequences;
  }
  void PrepareExample(uint64_t number, double, Example* example) const override {
    example->rows = {0};
    example->labels = {static_cast<int32_t>(number & 1)};
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }
};

// A text is the first token, of which tens are equal.
class KeyObjective : public Objective {
 public:
  std::vector<uint64_t> TextKeys(const Example& example) const override {
    return {static_cast<uint64_t>(example.ids[0] / 10)};
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }
};

class GroupsTest : public FilesTest {
 protected:
  // A store of examples of these sizes, with the ids 0, 1, 2 ...
  ExampleStore Store(const std::vector<int>& sizes) {
    auto writer = ExampleStoreWriter::Create(Path("store"), 100, 0);
    EXPECT_TRUE(writer.ok()) << writer.status();
    int32_t id = 0;
    for (const int size : sizes) {
      Example example;
      example.ids.resize(size);
      std::iota(example.ids.begin(), example.ids.end(), id);
      example.second = size;
      id += size;
      EXPECT_TRUE((*writer)->Add(example).ok());
    }
    EXPECT_TRUE((*writer)->Finish({}).ok());
    auto store = ExampleStore::Open(Path("store"), 100, 0);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // The micro-batches of the first step, in the order of the store.
  std::vector<Batch> Batches(const ExampleStore& store, int micro_tokens) {
    BatchSpec spec;
    spec.set_examples(static_cast<int32_t>(store.size()));
    spec.set_micro_tokens(micro_tokens);
    spec.set_shuffle(false);
    const GroupObjective objective;
    auto step = Batcher(store, objective, spec, 1).Next(0, 0);
    EXPECT_TRUE(step.ok()) << step.status();
    return std::move(step->micro);
  }
};

TEST_F(GroupsTest, SequencesOfAnExampleStayInOneBatch) {
  const ExampleStore store = Store({4, 6, 2, 6, 14, 2});
  const std::vector<Batch> batches = Batches(store, 10);
  ASSERT_EQ(batches.size(), 4);
  EXPECT_EQ(batches[0].cu_seqlens, (std::vector<int32_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(batches[0].groups, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(batches[1].groups, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(batches[2].groups, (std::vector<int32_t>{0})) << "larger than a micro-batch";
  EXPECT_EQ(batches[2].tokens(), 14);
  EXPECT_EQ(batches[3].groups, (std::vector<int32_t>{0}));
  int32_t id = 0;
  for (const Batch& batch : batches)
    for (int64_t r = 0; r < batch.tokens(); ++r) EXPECT_EQ(batch.ids[r], id++);
}

TEST_F(GroupsTest, SequencesOfAnExampleHaveNumbersOfTheirOwn) {
  const std::vector<Batch> batches = Batches(Store({4}), 10);
  ASSERT_EQ(batches.size(), 1);
  EXPECT_NE(batches[0].row_examples[0], batches[0].row_examples[2]);
}

TEST_F(GroupsTest, ATextTwiceInAStepWaitsForTheNext) {
  const ExampleStore store = Store({5, 5, 10, 5, 5});  // the first ids 0, 5, 10, 20, 25
  BatchSpec spec;
  spec.set_examples(3);
  spec.set_shuffle(false);
  const KeyObjective objective;
  const Batcher batcher(store, objective, spec, 1);
  const auto first = batcher.Next(0, 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->micro[0].cu_seqlens, (std::vector<int32_t>{0, 5, 15, 20}));
  EXPECT_EQ(first->waiting, std::vector<int64_t>{1});
  EXPECT_EQ(first->next, 4);
  const auto second = batcher.Next(first->next, 0, first->waiting);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->micro[0].ids[0], 5);
  EXPECT_EQ(second->micro[0].ids[5], 25);
  EXPECT_EQ(second->micro[0].ids[10], 10);  // of the second epoch, after 0, which waits
  EXPECT_EQ(second->waiting, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(second->next, 8);
}

}  // namespace
}  // namespace cloze
