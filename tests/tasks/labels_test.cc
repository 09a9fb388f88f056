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

TEST_F(LabelsTest, VectorsOfZeroAndOneAreNoNames) {
  SequenceClassificationSpec task;
  task.set_kind(SequenceClassificationSpec::MULTI_LABEL);
  const auto learn = [&](const std::string& name, const std::vector<std::string>& labels) {
    const bool json = name == "v.jsonl";
    std::string file = json ? "" : "text\tlabel\n";
    for (const std::string& label : labels) {
      absl::StrAppend(
          &file, json ? "{\"text\": \"a\", \"label\": " : "a\t", label, json ? "}\n" : "\n");
    }
    return LearnClassLabels(Data(name, file), task).status();
  };
  const std::vector<std::vector<std::string>> vectors = {{"[1, 0, 1]", "[0, 0, 0]"},
      {"[1.0, 0.0]", "[0, 1]"}, {R"(["1", "0", "0"])", R"(["0", "0", "1"])"},
      {"[true, false]", "[false, true]"}, {R"("1,0,1")", "[1, 1, 1]"}, {R"("[1. 0. 1.]")"}};
  for (const auto& labels : vectors) {
    ExpectError(learn("v.jsonl", labels), Exit::kData, "v.jsonl: label_field: each of ");
    ExpectError(learn("v.jsonl", labels), Exit::kData, "write the names of the labels whose value");
  }
  ExpectError(learn("v.tsv", {"1,0,1", "0,0,0"}), Exit::kData,
      "v.tsv: label_field: each of 2 texts has 3 values 0 or 1: expected the names");
  ExpectError(learn("v.tsv", {"[1, 0]", "[0, 1]"}), Exit::kData, "has 2 values 0 or 1");
  const std::vector<std::vector<std::string>> names = {{"[1, 0]", "[1]"}, {"[0]", "[1]"},
      {"[1, 2]", "[0, 1]"}, {"[1, 0]", "[]"}, {"[1, 0]", "[1, 0, 1]"}, {R"(["1st", "0"])"},
      {R"(["10", "00"])"}};
  for (const auto& labels : names) EXPECT_TRUE(learn("v.jsonl", labels).ok()) << labels[0];
}

TEST_F(LabelsTest, FoundLabelsOfEvaluation) {
  const auto ids = LabelIds::Create({"a", "b"});
  const auto where = [] { return std::string("f:1"); };
  FoundLabels one(*ids, true);
  EXPECT_EQ(*one.IdOf("b", where), 1);
  EXPECT_EQ(*one.IdOf("z", where), 2);
  EXPECT_EQ(*one.IdOf("y", where), 3);
  EXPECT_EQ(*one.IdOf("z", where), 2);
  EXPECT_THAT(one.Unseen(), ElementsAre("y", "z"));
  FoundLabels several(*ids, true);
  EXPECT_THAT(*several.ValuesOf({"b", "q", "b"}, where), ElementsAre(0, 1, 1));
  EXPECT_TRUE(several.Finish("f").ok());
  EXPECT_EQ(several.Repeats(), "1 text with a label that is given twice: f:1 has \"b\" twice");
  FoundLabels vectors(*ids, true);
  EXPECT_TRUE(vectors.ValuesOf({"1", "0"}, where).ok());
  ExpectError(vectors.Finish("f").status(), Exit::kData, "f: label_field: each of 1 text has 2");
  FoundLabels training(*ids, false);
  ExpectError(training.ValuesOf({"1", "0"}, where).status(), Exit::kData, "f:1: label_field: each");
  ExpectError(training.ValuesOf({"c"}, where).status(), Exit::kData, "unknown label \"c\"");
  const auto numbers = LabelIds::Create({"0", "1", "2"});
  FoundLabels known(*numbers, true);
  EXPECT_TRUE(known.ValuesOf({"0", "1"}, where).ok());
  EXPECT_TRUE(known.Finish("f").ok()) << "labels of the model are names";
}

TEST_F(LabelsTest, OnlyDecimalNumbersAreSortedByValue) {
  EXPECT_THAT(*LearnClassLabels(Data("a.tsv", "text\tlabel\na\t0x10\nb\t9\n"), {}),
      ElementsAre("0x10", "9"));
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
