#include "tasks/training/default_settings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// Measured with tests/quality/defaults.sh's data, the last model: rate x epochs (batch) and the
// score in percent; the choice, or what is next to it, first, and the best of nine last. From
// random weights (TINY, hidden size 128) means of three seeds:
//
//   SST-2, 1,000 rows       6e-4 x 14 (16) 65.1   7e-4 x 26 (16) 64.4   3e-4 x 30 (32) 66.1
//   SST-2, 60,000           7e-4 x 2 (32) 80.8    7e-4 x 3 (32) 80.3    3e-4 x 1 (32) 81.1
//   SST-5, 8,544            6e-4 x 3 (16) 40.9    7e-4 x 6 (16) 38.6    3e-4 x 4 (32) 40.3
//   IMDB, 20,000            5e-4 x 2 (32) 83.2    7e-4 x 5 (32) 81.2    3e-4 x 2 (32) 83.6
//   XQuAD's titles, 680     7e-4 x 60 (16) 52.2   6e-4 x 60 (16) 50.4   1e-3 x 60 (32) 52.1
//   types, 20,000           5e-4 x 4 (32) 75.0    7e-4 x 8 (32) 74.9    3e-4 x 4 (32) 74.9
//   MRPC, 3,319 pairs       7e-4 x 3 (16) 69.0    7e-4 x 15 (16) 65.0   1e-3 x 3 (32) 68.9
//   EWT, 12,543             1.5e-3 x 8 (32) 90.9  7e-4 x 8 (32) 89.4    3e-3 x 8 (32) 91.3
//
// Pretrained (MiniLM, hidden size 384), one seed:
//
//   SST-2, 60               1e-4 x 20 (8) 71.6    1e-4 x 50 (8) 71.0
//   SST-2, 1,000            1e-4 x 13 (16) 82.6   1e-4 x 6 (16) 83.4    1e-4 x 3 (16) 82.2
//   XQuAD's titles, 680     1e-4 x 19 (16) 78.2   2e-4 x 10 (16) 78.8   1e-4 x 10 (16) 75.9

// Steps that a run should take, limited to these numbers of epochs, and the rate times the hidden
// size.
struct Course {
  double steps, least_epochs, most_epochs, rate;
};

Course CourseOf(const RunFacts& facts, const TaskSpec& spec) {
  const auto labels = static_cast<double>(std::min<int64_t>(facts.labels, 60));
  if (spec.has_sequence_to_sequence()) return {4000, 10, 60, facts.pretrained ? 0.04 : 0.09};
  Course course = {500 + 8 * labels, 3, 20, 0.04};
  if (!facts.pretrained && spec.has_token_tagging()) {
    course = {3000, 3, 25 + labels / 2, 0.22};  // each word has a label
  } else if (!facts.pretrained && spec.has_question_answering()) {
    course = {3000, 3, 25, 0.09};
  } else if (!facts.pretrained && !spec.train().text_pair_field().empty()) {
    course = {600, 3, 25, 0.09};  // pairs are soon known by heart
  } else if (!facts.pretrained) {
    course = {1200 + 40 * labels, 2, 12 + labels, 0.075 * (1 + labels / 240)};
  }
  const bool several =
      spec.sequence_classification().kind() == SequenceClassificationSpec::MULTI_LABEL;
  if (several || !TrainsAll(spec.trainable()))
    course.steps *= 1.5, course.least_epochs *= 1.5, course.most_epochs *= 1.5;
  return course;
}

int64_t ExamplesOf(double rows) { return rows < 500 ? 8 : rows < 10'000 ? 16 : 32; }

// Returns x with two digits.
double Round(double x) {
  const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
  return std::round(x / unit) * unit;
}

double RateOf(const RunFacts& facts, const TaskSpec& spec) {
  const double hidden = static_cast<double>(std::max<int64_t>(facts.hidden, 1)),
               wanted = CourseOf(facts, spec).rate / hidden;
  const double rate =
      facts.pretrained ? std::clamp(wanted, 2e-5, 3e-4) : std::clamp(wanted, 1e-4, 2e-3);
  if (spec.trainable().has_lora()) return rate * 7;
  return spec.trainable().head_only() ? rate * 20 : rate;
}

double StepsPerEpoch(const RunFacts& facts, const BatchSpec& batch) {
  const double steps = batch.examples() > 0 ? facts.rows / batch.examples()
                                            : facts.tokens / std::max<int64_t>(batch.tokens(), 1);
  return std::max(steps, 1e-3);
}

}  // namespace

std::vector<ChosenSetting> ChooseSettings(const RunFacts& facts, TaskSpec* spec) {
  const OpenSettings open = OpenSettingsOf(*spec);
  std::vector<ChosenSetting> chosen;
  const std::string rows = absl::StrCat(WithCommas(static_cast<int64_t>(facts.rows)), " rows"),
                    start = facts.pretrained ? "pretrained" : "random weights";
  if (open.batch) {
    spec->mutable_batch()->set_examples(ExamplesOf(facts.rows));
    chosen.push_back({"batch.examples", absl::StrCat(spec->batch().examples()), rows});
  }
  if (open.length) {
    const Course course = CourseOf(facts, *spec);
    const double steps = StepsPerEpoch(facts, spec->batch());
    const double epochs =
        std::ceil(std::clamp(course.steps / steps, course.least_epochs, course.most_epochs));
    spec->mutable_schedule()->set_epochs(static_cast<float>(epochs));
    chosen.push_back({"schedule.epochs", absl::StrFormat("%.0f", epochs),
        absl::StrFormat("%s steps: %s, %s",
            WithCommas(static_cast<int64_t>(std::ceil(epochs * steps))), rows, start)});
  }
  if (open.rate) {
    const double rate = Round(RateOf(facts, *spec));
    spec->mutable_optimizer()->set_learning_rate(static_cast<float>(rate));
    const char* part = spec->trainable().has_lora()    ? ", LoRA"
                       : spec->trainable().head_only() ? ", the head only"
                                                       : "";
    chosen.push_back({"optimizer.learning_rate", absl::StrFormat("%g", rate),
        absl::StrFormat("%s, hidden size %d%s", start, facts.hidden, part)});
  }
  return chosen;
}

std::string DescribeSettings(const std::vector<ChosenSetting>& settings) {
  std::string text;
  for (const auto& [field, value, reason] : settings)
    absl::StrAppend(&text, text.empty() ? "chosen: " : "; ", field, " ", value, " (", reason, ")");
  return text;
}

}  // namespace cloze
