#include "tasks/run/result_sentence.h"

#include "gtest/gtest.h"

namespace cloze {
namespace {

Json Class(const char* label, double recall, int support) {
  return {{"label", label}, {"recall", recall}, {"support", support}};
}

TEST(ResultSentence, ComparesAClassifierWithTheMostFrequentClass) {
  const Json metrics = {{"accuracy", 0.9412},
      {"per_class", {Class("Billing", 0.95, 60), Class("Legal", 0, 3), Class("Sales", 0.9, 37)}}};
  EXPECT_EQ(ResultSentence(metrics, "texts"),
      "Right on 94.1 % of 100 held-out texts. Always answering “Billing” would be right on 60.0 "
      "%.");
}

TEST(ResultSentence, NamesAModelThatIgnoresItsInput) {
  const Json metrics = {{"accuracy", 0.6},
      {"per_class", {Class("Billing", 1, 60), Class("Legal", 0, 3), Class("Sales", 0, 37)}}};
  EXPECT_EQ(ResultSentence(metrics, "texts"),
      "Right on 60.0 % of 100 held-out texts. It answers “Billing” every time.");
}

TEST(ResultSentence, PrefersThatOfTheRun) {
  const Json result = {{"sentence", "right on 3 % of 9 held-out rows"},
      {"warning", "warning: the model answers \"a\" for every text"}};
  EXPECT_EQ(ResultSentence(Json(), "texts", result),
      "Right on 3 % of 9 held-out rows. The model answers \"a\" for every text.");
}

TEST(ResultSentence, HasOneForEachKindOfTask) {
  EXPECT_EQ(ResultSentence({{"span_recall", 0.5}, {"span_precision", 0.25}, {"accuracy", 0.9},
                               {"per_type", {{{"type", "LOC"}, {"support", 8}}}}},
                "words"),
      "Finds 50.0 % of 8 held-out spans; 25.0 % of the spans that it finds are right.");
  EXPECT_EQ(ResultSentence({{"micro_f1", 0.93}, {"accuracy", 0.5}}, "texts"),
      "All labels are right for 50.0 % of the held-out texts; F1 over single labels is 0.93.");
  EXPECT_EQ(ResultSentence({{"pearson", 0.866}, {"mae", 0.4}}, "texts"),
      "Predictions on held-out texts correlate with the true numbers with r = 0.866; they are off "
      "by 0.4 on average.");
  EXPECT_EQ(ResultSentence({{"perplexity", 12.34}, {"accuracy", 0.51}}, "texts"),
      "Guesses 51.0 % of the tokens of held-out text; the perplexity is 12.3.");
  EXPECT_EQ(ResultSentence(Json(), "texts"), "");
  EXPECT_EQ(ResultSentence({{"accuracy", nullptr}, {"per_class", 3}}, "texts"), "");
}

}  // namespace
}  // namespace cloze
