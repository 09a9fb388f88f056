#include "tasks/training/run_result.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "tasks/data_summary.h"

namespace cloze {
namespace {

constexpr int64_t kMaxExamples = 100'000;

// "AMD EPYC 9654"; "" where the system does not say.
std::string CpuName() {
  const std::string text = ReadSystemFile("/proc/cpuinfo");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (absl::StartsWith(line, "model name") && colon != line.npos)
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

absl::StatusOr<OrderedJson> Describe(
    const BuiltStore& built, const std::vector<std::string>& labels) {
  ASSIGN_OR_RETURN(
      const StoreContent content, ContentOf(built.store, labels.size(), kMaxExamples, nullptr));
  return SummaryOf(built.store.stats(), content, labels);
}

// Returns the label that the model gives to every text although they have several, by the confusion
// of its answers; "" if there is none.
std::string OnlyAnswer(const MetricResults& best) {
  for (const auto& [name, text] : best.tables) {
    if (name != "confusion" || text == "null") continue;
    const Json table = Json::parse(text);
    const Json& counts = table["counts"];
    std::set<size_t> labels, answers;
    for (size_t label = 0; label < counts.size(); ++label) {
      for (size_t answer = 0; answer < counts.size(); ++answer)
        if (counts[label][answer] > 0) labels.insert(label), answers.insert(answer);
    }
    const bool one = labels.size() > 1 && answers.size() == 1;
    return one ? table["labels"][*answers.begin()].get<std::string>() : "";
  }
  return "";
}

// Returns how a model answers that has learned nothing; else "". `value`: of the sentence's metric.
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

absl::Status WriteRunInfo(
    const std::string& path, const RunInputs& inputs, const std::string& program) {
  if (PathExists(path)) return absl::OkStatus();
  OrderedJson about = {{"program", program},
      {"machine", {{"cpu", CpuName()}, {"threads", Threads()}, {"kernels", KernelsName()},
                      {"matmul", MatmulLibrary()}, {"compute", NameOf(inputs.compute)}}}};
  const std::vector<std::string> labels = CountedLabels(inputs.config);
  ASSIGN_OR_RETURN(about["data"]["train"], Describe(*inputs.train, labels));
  if (inputs.validation.has_value()) {
    ASSIGN_OR_RETURN(about["data"]["validation"], Describe(*inputs.validation, labels));
  }
  return WriteFileAtomically(path, ToJsonText(about));
}

OrderedJson DescribeResult(
    const TaskSpec& spec, const MetricResults& best, const Baselines& baselines, int64_t steps) {
  if (baselines.metric.empty()) return nullptr;
  const auto found = best.Value(baselines.metric);
  if (!found.ok()) return nullptr;
  OrderedJson result = {{"sentence", Sentence(spec, *found, baselines)}, {"warning", nullptr},
      {"metric", baselines.metric}, {"value", *found}, {"examples", baselines.examples},
      {"unit", spec.has_token_tagging() ? "words" : "rows"},
      {"baselines", {{"most_frequent", baselines.most_frequent}, {"words", baselines.words}}}};
  if (const std::string same = SameAnswer(spec, best, *found); !same.empty())
    result["warning"] = absl::StrCat("warning: the model ", same,
        ": it has not learned from the texts (", LearningAdvice(spec, steps), ")");
  return result;
}

std::string LearningAdvice(const TaskSpec& spec, int64_t steps) {
  constexpr int64_t kFewSteps = 600;
  const std::string rate =
      "lower optimizer.learning_rate by a factor of 3 to 10 (raise it if it is below 1e-5), or "
      "raise schedule.warmup_share";
  if (steps == 0 || steps >= kFewSteps) return absl::StrCat(rate, ", or train for more steps");
  const ScheduleSpec& schedule = spec.schedule();
  const double factor = std::ceil(1000.0 / static_cast<double>(steps));
  const std::string longer =
      schedule.steps() > 0 ? "schedule.steps: 1000"
                           : absl::StrFormat("schedule.epochs: %.0f", schedule.epochs() * factor);
  return absl::StrCat("the run has only ", steps, " steps: train for more, ", longer,
      "; if that does not help, ", rate);
}

std::string PlateauNote(
    double loss, double chance, const TaskSpec& spec, size_t labels, int64_t steps) {
  if (!(loss >= 0.97 * chance)) return "";
  const bool pretrains = MakeTask(spec)->pretrains(), masks = spec.has_masked_lm();
  // A new head gives all labels about the same probability.
  const double start = std::log(static_cast<double>(std::max<size_t>(labels, 2)));
  // Numbers far from 0 have a large loss at the beginning.
  const bool numbers =
      spec.sequence_classification().kind() == SequenceClassificationSpec::REGRESSION;
  return absl::StrFormat(
      "note: the loss is %.4g; a model that ignores its input reaches %.4g. If the loss stays "
      "there: %s",
      loss, chance,
      loss > std::max(5 * chance, 1.5 * start) && !numbers ? "lower optimizer.learning_rate"
      : loss > 1.15 * chance
          ? "raise optimizer.learning_rate (lower it if the loss rises), or train "
            "for more steps"
      : !pretrains ? LearningAdvice(spec, steps)
      : masks      ? "begin with short pieces (masked_lm.warmup_from_tokens: 16), set "
                     "model.encoder.query_key_start: 2 (not MODERN), or take more and smaller steps"
                   : "take more and smaller steps");
}

}  // namespace cloze
