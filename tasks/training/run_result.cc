#include "tasks/training/run_result.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "tasks/training/plateau.h"

namespace cloze {
namespace {

OrderedJson NumberOrNull(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}

// Returns the label that the model gives to every text although they have several, by the confusion
// of its answers; "" if there is none.
std::string OnlyAnswer(const MetricResults& best) {
  for (const auto& [name, text] : best.tables) {
    if (name != "confusion" || text == "null") continue;
    const Json table = Json::parse(text);
    const Json& counts = table["counts"];
    int64_t labels = 0, answers = 0;
    std::string only;
    for (size_t l = 0; l < counts.size(); ++l) {
      int64_t labelled = 0, predicted = 0;
      for (size_t other = 0; other < counts.size(); ++other) {
        labelled += counts[l][other].get<int64_t>();
        predicted += counts[other][l].get<int64_t>();
      }
      labels += labelled > 0;
      answers += predicted > 0;
      if (predicted > 0) only = table["labels"][l].get<std::string>();
    }
    return labels > 1 && answers == 1 ? only : "";
  }
  return "";
}

// What is known as learning nothing, "" otherwise. `value`: of the metric of the sentence.
std::string SameAnswer(const TaskSpec& spec, const MetricResults& best, double value) {
  const auto kind = spec.sequence_classification().kind();
  if (spec.has_sequence_classification() && kind == SequenceClassificationSpec::REGRESSION)
    return std::isnan(value) ? "gives every text the same number" : "";
  if (spec.has_sequence_classification() && kind == SequenceClassificationSpec::MULTI_LABEL)
    return value == 0 ? "finds no label right" : "";
  const std::string only = OnlyAnswer(best);
  if (only.empty()) return "";
  return absl::StrCat(
      "answers \"", Quote(only), "\" for every ", spec.has_token_tagging() ? "word" : "text");
}

std::string Sentence(const TaskSpec& spec, double value, const Baselines& baselines) {
  const bool right = baselines.metric == "accuracy", tags = spec.has_token_tagging();
  const auto number = [&](double x, int digits) {
    return right ? absl::StrFormat("%.*f %%", digits, 100 * x)
                 : absl::StrFormat("%.*f", digits + 2, x);
  };
  const std::string items =
      absl::StrCat(WithCommas(baselines.examples), tags ? " held-out words" : " held-out rows");
  std::vector<std::string> others;
  if (std::isfinite(baselines.most_frequent))
    others.push_back(absl::StrCat("most frequent ",
        tags    ? "tag "
        : right ? "class "
                : "labels ",
        number(baselines.most_frequent, 0)));
  if (std::isfinite(baselines.words))
    others.push_back(absl::StrCat(
        tags ? "each word's most frequent tag " : "words alone ", number(baselines.words, 0)));
  std::string text = right ? absl::StrCat("right on ", number(value, 1), " of ", items)
                           : absl::StrCat(baselines.metric == "pearson"   ? "correlation "
                                          : baselines.metric == "span_f1" ? "F1 of spans "
                                                                          : "micro F1 ",
                                 number(value, 1), " on ", items);
  if (!others.empty()) absl::StrAppend(&text, " (", absl::StrJoin(others, ", "), ")");
  return text;
}

}  // namespace

RunResult DescribeResult(
    const TaskSpec& spec, const MetricResults& best, const Baselines& baselines, int64_t steps) {
  RunResult result;
  if (baselines.metric.empty()) return result;
  const auto found = best.Value(baselines.metric);
  if (!found.ok()) return result;
  result.sentence = Sentence(spec, *found, baselines);
  if (const std::string same = SameAnswer(spec, best, *found); !same.empty())
    result.warning = absl::StrCat("warning: the model ", same,
        ": it has not learned from the texts (", LearningAdvice(spec, steps), ")");
  result.json = {{"sentence", result.sentence},
      {"warning", result.warning.empty() ? OrderedJson() : OrderedJson(result.warning)},
      {"metric", baselines.metric}, {"value", NumberOrNull(*found)},
      {"examples", baselines.examples}, {"unit", spec.has_token_tagging() ? "words" : "rows"},
      {"baselines", {{"most_frequent", NumberOrNull(baselines.most_frequent)},
                        {"words", NumberOrNull(baselines.words)}}}};
  return result;
}

}  // namespace cloze
