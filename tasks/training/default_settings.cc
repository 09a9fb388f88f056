#include "tasks/training/default_settings.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// Measured with tests/quality/defaults.sh's data, one seed, the last model: rate x epochs (batch)
// and the score in percent; the choice, or what is next to it, first. TINY is from random weights,
// MiniLM pretrained (hidden size 384).
//
//   SST-2, 1,000 rows, TINY      7e-4 x 25 (16) 65.6   3e-4 x 10 (32) 67.0   1e-3 x 10 (32) 64.4
//                                3e-4 x 30 (32) 66.2   2e-3 x 30 (32) 63.2
//   XQuAD's titles, 680, TINY    7e-4 x 50 (16) 51.0   7e-4 x 25 (16) 45.3   1e-3 x 60 (32) 52.5
//     (means of three seeds)     7e-4 x 40 (16) 50.4   7e-4 x 60 (16) 51.0
//   MRPC, 3,319 pairs, TINY      7e-4 x 3 (16) 69.0    1e-3 x 3 (32) 68.9    7e-4 x 15 (16) 65.0
//     (means of three seeds)     7e-4 x 5 (16) 65.5
//   SST-5, 8,544, TINY           7e-4 x 6 (16) 37.9    3e-4 x 8 (32) 39.1    1e-3 x 4 (32) 38.1
//   EWT, 12,543, TINY            7e-4 x 8 (32) 89.1    1e-3 x 4 (16) 90.0    5e-4 x 8 (16) 89.3
//   types, 20,000, TINY          5e-4 x 8 (32) 75.6    1e-3 x 4 (32) 74.7
//   SST-2, 60, MiniLM            1e-4 x 20 (8) 71.6    1e-4 x 50 (8) 71.0
//   SST-2, 1,000, MiniLM         1e-4 x 13 (16) 82.6   1e-4 x 6 (16) 83.4    1e-4 x 3 (16) 82.2
//   XQuAD's titles, 680, MiniLM  1e-4 x 19 (16) 78.2   2e-4 x 10 (16) 78.8   1e-4 x 10 (16) 75.9

// Steps that a run should take, limited to these numbers of epochs.
struct Length {
  double steps, least_epochs, most_epochs;
};

Length LengthOf(const RunFacts& facts, const TaskSpec& spec) {
  const auto labels = static_cast<double>(std::min<int64_t>(facts.labels, 60));
  Length length =
      facts.pretrained ? Length{500 + 8 * labels, 3, 20} : Length{3000, 3, 25 + labels / 2};
  // From random weights, pairs are soon known by heart.
  if (!facts.pretrained && spec.has_sequence_classification() &&
      !spec.train().text_pair_field().empty())
    length.steps = 600;
  if (spec.has_sequence_to_sequence()) length = {4000, 10, 60};
  const bool several =
      spec.sequence_classification().kind() == SequenceClassificationSpec::MULTI_LABEL;
  if (several || !TrainsAll(spec.trainable()))
    length = {1.5 * length.steps, 1.5 * length.least_epochs, 1.5 * length.most_epochs};
  return length;
}

int64_t ExamplesOf(double rows) { return rows < 500 ? 8 : rows < 10'000 ? 16 : 32; }

// Returns x with two digits.
double Round(double x) {
  const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
  return std::round(x / unit) * unit;
}

double RateOf(const RunFacts& facts, const TaskSpec& spec) {
  const double hidden = static_cast<double>(std::max<int64_t>(facts.hidden, 1));
  const double rate = facts.pretrained ? std::clamp(0.04 / hidden, 2e-5, 3e-4)
                                       : std::clamp(0.09 / hidden, 1e-4, 1e-3);
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
    const Length length = LengthOf(facts, *spec);
    const double steps = StepsPerEpoch(facts, spec->batch());
    const double epochs =
        std::ceil(std::clamp(length.steps / steps, length.least_epochs, length.most_epochs));
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
