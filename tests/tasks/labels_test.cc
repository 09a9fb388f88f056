#include "tasks/labels.h"

#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;

class LabelsTest : public FilesTest {};

TEST_F(LabelsTest, NumbersAreSortedByValue) {
  EXPECT_THAT(*LearnClassLabels(Data("a.tsv", "text\tlabel\na\t10\nb\t9\nc\t-1\nd\t9\n"), {}),
      ElementsAre("-1", "9", "10"));
  EXPECT_THAT(*LearnClassLabels(Data("a.tsv", "text\tlabel\na\t10\nb\t9\nc\tx\n"), {}),
      ElementsAre("10", "9", "x"));
}

TEST_F(LabelsTest, SeveralOfEachText) {
  SequenceClassificationSpec task;
  task.set_kind(SequenceClassificationSpec::MULTI_LABEL);
  EXPECT_THAT(*LearnClassLabels(Data("a.tsv", "text\tlabel\na\tnew, old\nb\t\nc\told ,\n"), task),
      ElementsAre("new", "old"));
  EXPECT_THAT(*LearnClassLabels(Data("a.jsonl", R"({"text": "a", "label": ["x, y", 3]})"
                                                "\n"
                                                R"({"text": "a", "label": []})"
                                                "\n"
                                                R"({"text": "a", "label": "p, q"})"),
                  task),
      ElementsAre("3", "p, q", "x, y"));
  ExpectError(LearnClassLabels(Data("e.tsv", "text\tlabel\na\t\nb\t,\n"), task).status(),
      Exit::kData, "e.tsv: label_field: no labels in 2 examples: expected at least one");
  task.set_label_separator(" | ");
  EXPECT_THAT(
      *LearnClassLabels(Data("a.csv", "text,label\na,x | y\nb,x\n"), task), ElementsAre("x", "y"));
  ExpectError(
      LearnClassLabels(Data("b.jsonl", R"({"text": "a", "label": [["x"]]})"), task).status(),
      Exit::kData,
      "b.jsonl:1: label_field: \"label\" is not a string, number or boolean, or a list of them");
  ExpectError(
      LearnClassLabels(Data("d.jsonl", R"({"text": "a", "label": ["x", ""]})"), task).status(),
      Exit::kData, "d.jsonl:1: label_field: an empty label");
  ExpectError(LearnClassLabels(Data("c.jsonl", R"({"text": "a", "label": ["x"]})"), {}).status(),
      Exit::kData, "c.jsonl:1: label_field: \"label\" is not a string, number or boolean");
}

TEST_F(LabelsTest, Tags) {
  EXPECT_THAT(
      *LearnTags(Data("a.conll", "a O\nb B-X\n\nc O\nd I-X\n")), ElementsAre("B-X", "I-X", "O"));
}

TEST_F(LabelsTest, OnlyOfTheExamplesThatAreUsed) {
  DataSpec spec = Data("a.tsv", "text\tlabel\na\tx\nb\ty\nc\tz\n");
  spec.set_max_examples(2);
  EXPECT_THAT(*LearnClassLabels(spec, {}), ElementsAre("x", "y"));
}

TEST_F(LabelsTest, TooFewOrTooMany) {
  ExpectError(LearnClassLabels(Data("a.tsv", "text\tlabel\na\tx\nb\tx\n"), {}).status(),
      Exit::kData, "a.tsv: label_field: found only \"x\": expected at least 2 different labels");
  ExpectError(LearnTags(Data("a.conll", "\n")).status(), Exit::kData, "a.conll: no examples");
  std::string many = "text\tlabel\n";
  for (int i = 0; i <= 10000; ++i) many += "a\t" + std::to_string(i) + "\n";
  ExpectError(LearnClassLabels(Data("a.tsv", many), {}).status(), Exit::kData,
      "a.tsv:10002: label_field: more than 10000 different labels (is it the right column?)");
  ExpectError(
      LearnClassLabels(Data("a.tsv", "text\tlabel\na\t" + std::string(1025, 'y') + "\n"), {})
          .status(),
      Exit::kData, "a.tsv:2: label_field: a label of 1025 bytes, ");
}

TEST_F(LabelsTest, Stops) {
  std::atomic<bool> stop{true};
  ExpectError(
      LearnTags(Data("a.conll", "a O\nb X\n"), &stop).status(), Exit::kInterrupted, "stopped");
}

TEST(LabelIdsTest, FindsIds) {
  const auto ids = LabelIds::Create({"b", "a"});
  ASSERT_TRUE(ids.ok());
  const auto id_of = [&](const std::string& label) {
    return ids->IdOf(label, "label_field", [] { return std::string("f:3"); });
  };
  EXPECT_EQ(*id_of("b"), 0);
  EXPECT_EQ(*id_of("a"), 1);
  ExpectError(id_of("c\n").status(), Exit::kData,
      "f:3: label_field: unknown label \"c\\u{A}\": expected \"b\", \"a\"");
  ExpectError(
      LabelIds::Create({"a", "b", "a"}).status(), Exit::kSpec, "labels: \"a\" is given twice");
  ExpectError(LabelIds::Create({"a", ""}).status(), Exit::kSpec, "labels: label 2 is empty");
}

}  // namespace
}  // namespace cloze
