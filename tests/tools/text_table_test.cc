#include "tools/text_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cloze {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

OrderedJson Results(int labels) {
  OrderedJson names = OrderedJson::array(), counts = names, classes = names;
  for (int r = 0; r < labels; ++r) {
    names.push_back("label" + std::to_string(r));
    std::vector<int> row(labels);
    row[r] = 5, row[0] += r;
    counts.push_back(row);
    classes.push_back({{"label", names[r]}, {"precision", 0.5}, {"recall", 1.0}, {"f1", 2.0 / 3},
        {"support", r}});
  }
  return {{"accuracy", 0.75}, {"auc", nullptr}, {"per_class", classes},
      {"confusion", {{"labels", names}, {"counts", counts}}}};
}

TEST(AlignedTable, AlignsCodePoints) {
  EXPECT_EQ(AlignedTable({{"a", "x"}, {"\u4e2d\u00e9", "12"}}, {}), "a    x\n\u4e2d\u00e9  12\n");
  EXPECT_EQ(AlignedTable({{"a"}, {"b"}, {"c"}}, {.colour = true}, 2),
      "\x1b[1ma\x1b[0m\nb\n\x1b[1mc\x1b[0m\n");
}

TEST(ResultTables, ShowsMetricsClassesAndConfusion) {
  const std::string text = ResultTables(Results(3), {});
  EXPECT_THAT(text, HasSubstr("accuracy  0.7500\nauc            -\n"));
  EXPECT_THAT(text, HasSubstr("label1        0.5000  1.0000  0.6667        1\n"));
  EXPECT_THAT(text, HasSubstr("mean, sum     0.5000  1.0000  0.6667        3\n"));
  EXPECT_THAT(text, EndsWith("label2                 2       .       5\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

// macro_f1 counts classes without support that are predicted, and so does the table.
TEST(ResultTables, MeansAreThoseOfAllRows) {
  OrderedJson results = Results(3);
  results["per_class"][0].update({{"precision", 0.0}, {"recall", 0.0}, {"f1", 0.0}});
  EXPECT_THAT(
      ResultTables(results, {}), HasSubstr("mean, sum     0.3333  0.6667  0.4444        3\n"));
}

TEST(ResultTables, CutsManyLabels) {
  const std::string text = ResultTables(Results(60), {.width = 80});
  EXPECT_THAT(text, HasSubstr("and 10 more (--json shows all)"));
  EXPECT_THAT(text, HasSubstr("most frequent confusions\ntrue     predicted  count\n"
                              "label59     label0     59\n"));
  EXPECT_THAT(text, EndsWith("label50     label0     50\n"));
}

}  // namespace
}  // namespace cloze
