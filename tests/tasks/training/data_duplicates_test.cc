#include "tasks/data_duplicates.h"

#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DataDuplicates, LabelsThatDifferOnlyInCaseOrBlanks) {
  EXPECT_THAT(LabelVariants({"Billing", "billing", " billing ", "other", "Über", "über"}),
      ElementsAre(ElementsAre("Billing", "billing", " billing "), ElementsAre("Über", "über")));
  EXPECT_TRUE(LabelVariants({"B-PER", "I-PER"}).empty());
}

TEST(DataDuplicates, RepairsMakeThemTheMostFrequentOne) {
  const std::map<std::string, int64_t> counts = {
      {"Billing", 5}, {"billing", 9}, {"Billing ", 6}, {"a\"b", 1}, {"A\"b", 2}, {"other", 3}};
  std::vector<std::string> labels;
  for (const auto& [label, count] : counts) labels.push_back(label);
  EXPECT_THAT(LabelRepairs(labels, [&](const std::string& label) { return counts.at(label); }),
      ElementsAre(
          "trim_labels: true", "label_map: \"a\\\"b=A\\\"b\"", "label_map: \"billing=Billing\""));
  EXPECT_THAT(LabelRepairs({"a", "a "}, [](const std::string&) { return 1; }),
      ElementsAre("trim_labels: true"));
  EXPECT_THAT(LabelRepairs({"a", "b"}, [](const std::string&) { return 1; }), ElementsAre());
}

TEST_F(TrainerTest, ReportsRepeatedTextsLeaksAndConflicts) {
  Write("odd.csv",
      "text,label\nthe cat,a\nthe cat,a\na dog,A\na dog,b\n,b\nred box,b\nbig box,a\nsat,b\n");
  Write("dev.csv", "text,label\nthe cat,a\nfar,b\n");
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "odd.csv", "odd", 2);
  spec.spec.mutable_validation()->add_files(Path("dev.csv"));
  ASSERT_TRUE(Train(spec).ok());
  for (const char* line :
      {"train: empty: 1 text\n", "train: 2 of 8 examples have the same tokens as an earlier one\n",
          "train: 1 text occurs with different labels\n",
          "validation: 1 of 2 examples are also in train",
          "labels that differ only in case or white space: \"A\", \"a\"\n"})
    EXPECT_THAT(progress_, HasSubstr(line));
  Write("clean.csv", "text,label\nthe cat,a\na dog,b\n");
  spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "clean.csv", "clean", 2);
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(progress_, Not(HasSubstr("earlier one")));
}

}  // namespace
}  // namespace cloze
