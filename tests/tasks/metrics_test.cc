#include "tasks/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cloze {
namespace {

using testing::HasSubstr;

double Get(const MetricResults& results, const std::string& name) {
  const absl::StatusOr<double> value = results.Value(name);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : NAN;
}

std::vector<std::string> Names(const MetricResults& results) {
  std::vector<std::string> names;
  for (const auto& [name, value] : results.values) names.push_back(name);
  return names;
}

// scikit-learn's own example: y_true = [2, 0, 2, 2, 0, 1], y_pred = [0, 0, 2, 2, 0, 2].
ClassificationMetric SixAnswers() {
  ClassificationMetric metric({"ant", "bird", "cat"});
  const int truth[] = {2, 0, 2, 2, 0, 1}, predicted[] = {0, 0, 2, 2, 0, 2};
  for (int i = 0; i < 6; ++i) metric.Add(truth[i], predicted[i]);
  return metric;
}

TEST(ClassificationMetric, LabelsThatTheModelLacksAreWrong) {
  EXPECT_THAT(SixAnswers().Results().ToJson(), testing::Not(HasSubstr("unseen_labels")));
  ClassificationMetric metric = SixAnswers();
  metric.Add(3, 0);
  metric.Add(3, 1);
  const MetricResults results = metric.Results();
  EXPECT_NEAR(Get(results, "accuracy"), 4.0 / 8, 1e-12);
  // c = 4, s = 8, t = (2, 1, 3, 2), p = (4, 1, 3, 0): (32 - 18) / sqrt((64 - 18) (64 - 26)).
  EXPECT_NEAR(Get(results, "mcc"), 14 / std::sqrt(46.0 * 38), 1e-12);
  EXPECT_THAT(results.ToJson(), HasSubstr("\"unseen_labels\":2"));
}

// Each of them is a class of its own, as in scikit-learn:
// f1_score([2, 0, 2, 2, 0, 1, 3, 4], [0, 0, 2, 2, 0, 2, 0, 1], average="macro", zero_division=0),
// and matthews_corrcoef.
TEST(ClassificationMetric, UnseenLabelsAreClassesWithoutARightAnswer) {
  ClassificationMetric metric = SixAnswers();
  metric.Add(4, 1);
  metric.Add(3, 0);
  const MetricResults results = metric.Results();
  EXPECT_NEAR(Get(results, "macro_f1"), (2 * 2 / 6.0 + 2 * 2 / 6.0) / 5, 1e-12);
  EXPECT_NEAR(Get(results, "mcc"), 14 / std::sqrt(48.0 * 38), 1e-12);
  const OrderedJson json = OrderedJson::parse(results.ToJson());
  ASSERT_EQ(json["per_class"].size(), 5);
  EXPECT_EQ(json["per_class"][3]["label"], "(unseen label 1)");
  EXPECT_EQ(json["per_class"][4]["support"], 1);
  EXPECT_EQ(json["confusion"]["labels"].size(), 3);
}

// One definition of macro F1: the mean over the table, whose classes occur in the data or in the
// predictions (scikit-learn's f1_score and classification_report).
TEST(ClassificationMetric, MacroF1IsTheMeanOfTheTable) {
  ClassificationMetric metric({"a", "b", "predicted", "absent"});
  metric.Add(0, 0);
  metric.Add(0, 2);
  metric.Add(1, 1);
  const MetricResults results = metric.Results();
  EXPECT_NEAR(Get(results, "macro_f1"), (2 / 3.0 + 1 + 0) / 3, 1e-12);
  double sum = 0;
  const OrderedJson classes = OrderedJson::parse(results.ToJson())["per_class"];
  for (const OrderedJson& row : classes) sum += row["f1"].get<double>();
  EXPECT_EQ(classes.size(), 3);
  EXPECT_EQ(classes[2]["label"], "predicted");
  EXPECT_NEAR(sum / classes.size(), Get(results, "macro_f1"), 1e-12);
}

TEST(ClassificationMetric, CountsAsByHand) {
  const MetricResults results = SixAnswers().Results();
  EXPECT_NEAR(Get(results, "accuracy"), 4.0 / 6, 1e-12);
  EXPECT_NEAR(Get(results, "macro_f1"), (0.8 + 0 + 2.0 / 3) / 3, 1e-12);
  // c = 4, s = 6, t = (2, 1, 3), p = (3, 0, 3): (24 - 15) / sqrt((36 - 18) (36 - 14)).
  EXPECT_NEAR(Get(results, "mcc"), 9 / std::sqrt(18.0 * 22), 1e-12);
  EXPECT_EQ(Get(results, ""), Get(results, "accuracy"));
  const OrderedJson json = OrderedJson::parse(results.ToJson());
  EXPECT_EQ(json["confusion"]["counts"], OrderedJson::parse("[[2,0,0],[0,0,1],[1,0,2]]"));
  EXPECT_EQ(json["confusion"]["labels"], OrderedJson::parse(R"(["ant","bird","cat"])"));
  EXPECT_EQ(json["per_class"][0]["label"], "ant");
  EXPECT_NEAR(json["per_class"][0]["precision"].get<double>(), 2.0 / 3, 1e-12);
  EXPECT_NEAR(json["per_class"][0]["recall"].get<double>(), 1, 1e-12);
  EXPECT_NEAR(json["per_class"][0]["f1"].get<double>(), 0.8, 1e-12);
  EXPECT_EQ(json["per_class"][1]["precision"], 0.0);
  EXPECT_EQ(json["per_class"][2]["support"], 3);
}

TEST(ClassificationMetric, BinaryMccIsThePhiCoefficient) {
  ClassificationMetric metric({"no", "yes"});
  const int counts[2][2] = {{50, 10}, {5, 35}};
  for (int label = 0; label < 2; ++label) {
    for (int predicted = 0; predicted < 2; ++predicted) {
      for (int i = 0; i < counts[label][predicted]; ++i) metric.Add(label, predicted);
    }
  }
  EXPECT_NEAR(
      Get(metric.Results(), "mcc"), (35.0 * 50 - 10 * 5) / std::sqrt(45.0 * 40 * 60 * 55), 1e-12);
}

TEST(ClassificationMetric, OneSidedPredictionsHaveNoCorrelation) {
  ClassificationMetric metric({"a", "b"});
  metric.Add(0, 0);
  metric.Add(1, 0);
  EXPECT_EQ(Get(metric.Results(), "mcc"), 0);
  ClassificationMetric perfect({"a", "b", "absent"});
  perfect.Add(0, 0);
  perfect.Add(1, 1);
  EXPECT_NEAR(Get(perfect.Results(), "mcc"), 1, 1e-12);
  EXPECT_NEAR(Get(perfect.Results(), "macro_f1"), 1, 1e-12)
      << "a label that never occurs must not count";
}

TEST(ClassificationMetric, NothingCountedIsNull) {
  const MetricResults results = ClassificationMetric({"a", "b"}).Results();
  EXPECT_TRUE(std::isnan(Get(results, "accuracy")));
  EXPECT_TRUE(OrderedJson::parse(results.ToJson())["accuracy"].is_null());
}

TEST(ClassificationMetric, ManyLabelsStaySmall) {
  std::vector<std::string> labels;
  for (int i = 0; i < 20000; ++i) labels.push_back(std::to_string(i));
  ClassificationMetric metric(labels);
  metric.Add(19999, 3);
  const OrderedJson json = OrderedJson::parse(metric.Results().ToJson());
  EXPECT_TRUE(json["confusion"].is_null());
  EXPECT_EQ(json["per_class"].size(), 2);
}

TEST(ClassificationMetric, LabelsMayHoldAnyBytes) {
  ClassificationMetric metric({"\"quoted\"\n", "\xFF"});
  metric.Add(0, 1);
  EXPECT_EQ(
      OrderedJson::parse(metric.Results().ToJson())["confusion"]["labels"][0], "\"quoted\"\n");
}

TEST(MetricResults, UnknownNameListsTheKnown) {
  const absl::Status status = SixAnswers().Results().Value("acuracy").status();
  EXPECT_EQ(ExitOf(status), Exit::kSpec);
  EXPECT_THAT(std::string(status.message()), HasSubstr("accuracy, macro_f1, mcc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"accuracy\""));
}

TEST(Metric, KnowsWhichWayIsBetter) {
  const Metric accuracy = {"accuracy", Better::kLarger}, loss = {"loss", Better::kSmaller};
  EXPECT_TRUE(IsBetter(accuracy, 0.9, 0.8));
  EXPECT_FALSE(IsBetter(accuracy, 0.8, 0.8));
  EXPECT_TRUE(IsBetter(loss, 0.8, 0.9));
  EXPECT_FALSE(IsBetter(loss, 0.9, 0.8));
  EXPECT_TRUE(IsBetter(loss, 5, NAN));
  EXPECT_FALSE(IsBetter(loss, NAN, 5));
  EXPECT_FALSE(IsBetter(loss, NAN, NAN));
}

TEST(Metric, IsFoundByItsName) {
  const std::vector<Metric> metrics = {{"f1", Better::kLarger}, {"mse", Better::kSmaller}};
  EXPECT_EQ(FindMetric(metrics, "mse")->better, Better::kSmaller);
  const absl::Status unknown = FindMetric(metrics, "mes").status();
  EXPECT_EQ(ExitOf(unknown), Exit::kSpec);
  EXPECT_THAT(unknown.message(), HasSubstr("expected one of f1, mse; did you mean"));
}

TEST(MultiLabelMetric, CountsAsByHand) {
  MultiLabelMetric metric({"a", "b", "c"});
  metric.Add({1, 0, 0}, {true, false, false});
  metric.Add({1, 1, 0}, {true, false, false});
  metric.Add({0, 0, 0}, {false, true, false});
  metric.Add({0, 0, 0}, {false, false, false});
  const MetricResults results = metric.Results();
  EXPECT_EQ(results.values.front().first, "micro_f1");
  EXPECT_DOUBLE_EQ(*results.Value("micro_f1"), 2.0 * 2 / (3 + 3));
  EXPECT_DOUBLE_EQ(*results.Value("macro_f1"), (1.0 + 0.0 + 0.0) / 3);  // c occurs nowhere
  EXPECT_DOUBLE_EQ(*results.Value("accuracy"), 0.5);
  EXPECT_THAT(results.ToJson(),
      HasSubstr(R"({"label":"b","precision":0.0,"recall":0.0,"f1":0.0,"support":1})"));
  EXPECT_TRUE(std::isnan(*MultiLabelMetric({"a"}).Results().Value("micro_f1")));
  EXPECT_TRUE(std::isnan(*MultiLabelMetric({"a"}).Results().Value("macro_f1")));
  MultiLabelMetric none({"a"});
  none.Add({0}, {false});
  EXPECT_EQ(*none.Results().Value("micro_f1"), 0);  // zero_division of scikit-learn
  EXPECT_EQ(*none.Results().Value("macro_f1"), 0);
  EXPECT_EQ(*none.Results().Value("accuracy"), 1);
}

// scipy.stats.pearsonr and spearmanr of these; ties share their mean rank.
TEST(RegressionMetric, CorrelatesAndMeasures) {
  RegressionMetric metric;
  const double values[] = {1, 2, 2, 4, 5}, predicted[] = {1.5, 1, 3, 3, 7};
  for (int i = 0; i < 5; ++i) metric.Add(values[i], predicted[i]);
  const MetricResults results = metric.Results();
  EXPECT_EQ(results.values.front().first, "pearson");
  EXPECT_NEAR(*results.Value("pearson"), 0.8460245, 1e-6);
  EXPECT_NEAR(*results.Value("spearman"), 0.7631579, 1e-6);
  EXPECT_DOUBLE_EQ(*results.Value("mse"), (0.25 + 1 + 1 + 1 + 4) / 5);
  EXPECT_DOUBLE_EQ(*results.Value("mae"), (0.5 + 1 + 1 + 1 + 2) / 5);
}

TEST(RegressionMetric, ConstantsHaveNoCorrelation) {
  RegressionMetric metric;
  for (int i = 0; i < 3; ++i) metric.Add(i, 1);
  EXPECT_TRUE(std::isnan(*metric.Results().Value("pearson")));
  EXPECT_THAT(metric.Results().ToJson(), HasSubstr("\"spearman\":null"));
  RegressionMetric tenths;  // whose mean is not 0.1
  for (int i = 0; i < 3; ++i) tenths.Add(i, 0.1);
  EXPECT_TRUE(std::isnan(*tenths.Results().Value("pearson")));
  RegressionMetric line;
  for (int i = 0; i < 50; ++i) line.Add(0.1 * i, 0.3 * i);
  EXPECT_LE(*line.Results().Value("pearson"), 1);
  EXPECT_NEAR(*line.Results().Value("pearson"), 1, 1e-12);
  EXPECT_TRUE(std::isnan(*RegressionMetric().Results().Value("mse")));
}

TEST(MaskedLmMetric, ComputesLossAndBits) {
  MaskedLmMetric metric;
  metric.Add(10.0, 1, 4);
  metric.Add(2.0, 2, 2);
  metric.AddText(30, 100);
  metric.AddText(10, 50);
  const MetricResults results = metric.Results();
  EXPECT_EQ(Names(results).front(), "loss");
  EXPECT_NEAR(Get(results, "loss"), 2, 1e-12);
  EXPECT_NEAR(Get(results, "perplexity"), std::exp(2.0), 1e-12);
  EXPECT_NEAR(Get(results, "accuracy"), 0.5, 1e-12);
  EXPECT_NEAR(Get(results, "bits_per_byte"), 2 * 40 / (std::log(2.0) * 150), 1e-12);
  EXPECT_EQ(OrderedJson::parse(results.ToJson())["masked_tokens"], 6);
}

TEST(MaskedLmMetric, UniformGuessesOverBytesCostEightBits) {
  MaskedLmMetric metric;
  metric.Add(15 * std::log(256.0), 0, 15);
  metric.AddText(100, 100);
  EXPECT_NEAR(Get(metric.Results(), "bits_per_byte"), 8, 1e-12);
}

TEST(MaskedLmMetric, UnknownBytesAreNull) {
  MaskedLmMetric metric;
  metric.Add(1, 0, 1);
  EXPECT_TRUE(OrderedJson::parse(metric.Results().ToJson())["bits_per_byte"].is_null());
  EXPECT_THAT(metric.Results().ToLine(), testing::Not(HasSubstr("bits_per_byte")));
}

TEST(TaggingMetric, LenientAndStrictDiffer) {
  TaggingMetric metric({"B", "I", "O"});
  metric.Add({0, 1}, {1, 1}, {0, 0});
  const MetricResults results = metric.Results();
  EXPECT_EQ(Names(results).front(), "span_f1");
  EXPECT_EQ(Get(results, "span_f1"), 1);
  EXPECT_EQ(Get(results, "strict_span_f1"), 0);
  EXPECT_EQ(Get(results, "accuracy"), 0.5);
}

// seqeval's own example: one of two spans right.
TEST(TaggingMetric, CountsSpansByType) {
  const std::vector<std::string> labels = {"O", "B-MISC", "I-MISC", "B-PER", "I-PER"};
  TaggingMetric metric(labels);
  metric.Add({0, 0, 0, 1, 2, 2, 0}, {0, 0, 1, 2, 2, 2, 0}, {0, 0, 0, 0, 0, 0, 0});
  metric.Add({3, 4, 0}, {3, 4, 0}, {0, 0, 0});
  const MetricResults results = metric.Results();
  EXPECT_EQ(Get(results, "span_f1"), 0.5);
  EXPECT_EQ(Get(results, "span_precision"), 0.5);
  EXPECT_EQ(Get(results, "span_recall"), 0.5);
  EXPECT_NEAR(Get(results, "accuracy"), 0.8, 1e-12);
  const OrderedJson types = OrderedJson::parse(results.ToJson())["per_type"];
  EXPECT_EQ(types[0]["type"], "MISC");
  EXPECT_EQ(types[0]["f1"], 0.0);
  EXPECT_EQ(types[1]["type"], "PER");
  EXPECT_EQ(types[1]["f1"], 1.0);
  EXPECT_EQ(types[1]["support"], 1);
}

TEST(TaggingMetric, SpanMustAgreeInTypeAndBothBorders) {
  TaggingMetric metric({"O", "B-A", "I-A", "B-B", "I-B"});
  metric.Add({1, 2, 0, 1, 2}, {1, 0, 0, 3, 4}, {0, 0, 0, 0, 0});
  EXPECT_EQ(Get(metric.Results(), "span_f1"), 0);
}

TEST(MultiLabelMetric, LabelsThatTheModelLacksAreMissed) {
  MultiLabelMetric metric({"a", "b"});
  metric.Add(std::vector<float>{1, 0}, {true, false});
  metric.Add(std::vector<float>{1, 0}, {true, false}, true);
  const MetricResults results = metric.Results();
  EXPECT_NEAR(Get(results, "accuracy"), 0.5, 1e-12);
  EXPECT_NEAR(Get(results, "micro_f1"), 2 * 2.0 / (2 + 3), 1e-12);
  EXPECT_THAT(results.ToJson(), HasSubstr("\"unseen_labels\":1"));
  EXPECT_THAT(results.ToLine(), HasSubstr("unseen_labels 1"));
}

TEST(TaggingMetric, LabelsThatTheModelLacksAreWrong) {
  // The gold spans: A of words 0 to 1, whose I the model lacks; C, which it does not know; B.
  TaggingMetric metric({"O", "B-A", "B-B"}, {"B-C", "I-A", "odd"});
  metric.Add({1, 4, 3, 2, 5}, {1, 0, 0, 2, 0}, {0, 0, 0, 0, 0});
  const MetricResults results = metric.Results();
  EXPECT_NEAR(Get(results, "accuracy"), 2.0 / 5, 1e-12);
  EXPECT_NEAR(Get(results, "span_f1"), 2 * 1.0 / (3 + 2), 1e-12);
  EXPECT_THAT(results.ToJson(), HasSubstr("\"unseen_labels\":3"));
  // The classes that occur: O, B-A, B-B and the three unseen ones.
  EXPECT_NEAR(Get(results, "macro_f1"), (0 + 1 + 1) / 6.0, 1e-12);
  EXPECT_EQ(OrderedJson::parse(results.ToJson())["per_class"][3]["label"], "B-C");
}

TEST(TaggingMetric, TypesThatOccurNowhereHaveNoRow) {
  TaggingMetric metric({"O", "B-A", "B-B", "B-C"});
  metric.Add({0, 1}, {2, 1}, {0, 0});
  const OrderedJson types = OrderedJson::parse(metric.Results().ToJson())["per_type"];
  ASSERT_EQ(types.size(), 2);
  EXPECT_EQ(types[1]["type"], "B");
}

TEST(TaggingMetric, SpansDoNotCrossSentences) {
  TaggingMetric metric({"O", "B-A", "I-A"});
  metric.Add({0, 1}, {0, 1}, {0, 0});
  metric.Add({2, 0}, {0, 0}, {0, 0});
  EXPECT_NEAR(Get(metric.Results(), "span_recall"), 0.5, 1e-12);
}

TEST(TaggingMetric, CountsWordsOfSeveralPiecesAlsoAlone) {
  TaggingMetric metric({"NOUN", "VERB"});
  metric.Add({0, 1, 1, 0}, {0, 1, 0, 1}, {0, 2, 1, 1});
  const MetricResults results = metric.Results();
  EXPECT_EQ(Get(results, "accuracy"), 0.5);
  EXPECT_NEAR(Get(results, "accuracy_multi_piece"), 1.0 / 3, 1e-12);
  EXPECT_EQ(OrderedJson::parse(results.ToJson())["multi_piece_words"], 3);
}

TEST(TaggingMetric, OtherLabelsHaveNoSpans) {
  TaggingMetric metric({"NOUN", "VERB"});
  metric.Add({0, 1, 1}, {0, 1, 0}, {0, 0, 0});
  const MetricResults results = metric.Results();
  EXPECT_EQ(Names(results), (std::vector<std::string>{"accuracy", "macro_f1", "mcc"}));
  EXPECT_FALSE(OrderedJson::parse(results.ToJson()).contains("per_type"));
}

}  // namespace
}  // namespace cloze
