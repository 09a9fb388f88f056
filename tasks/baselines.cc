#include "tasks/baselines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/base/hash_map.h"
#include "tasks/linear_model.h"
#include "tasks/metrics.h"

namespace cloze {
namespace {

constexpr int64_t kMaxFitTokens = 3'000'000;
constexpr double kPenalty = 0.1;
// Limits of the linear model: a fit needs some 200 bytes for each weight and 16 for each score.
constexpr int64_t kMaxWeights = 1'000'000, kMaxScores = 5'000'000;
constexpr int64_t kMinFeatures = 100;

using Kind = SequenceClassificationSpec::Kind;

// A store, and which of its texts are read.
struct Texts {
  const ExampleStore& store;
  int64_t stride = 1;  // every n-th text
  int64_t most = 0;    // the first ones; 0: all
  const std::atomic<bool>* stop = nullptr;
};

// Calls `visit` with the sequences of each text. With a stride, each sequence counts as a text, so
// that the others need not be read.
absl::Status ForTexts(
    const Texts& texts, absl::FunctionRef<void(const std::vector<Example>& text)> visit) {
  std::vector<Example> text;
  int64_t number = 0;
  for (int64_t i = 0; i < texts.store.size(); i += texts.stride) {
    if (texts.stop != nullptr && *texts.stop) return Error(Exit::kInterrupted, "stopped");
    Example example;
    RETURN_IF_ERROR(texts.store.Read(i, &example));
    if (!text.empty() && (texts.stride > 1 || !example.continues)) {
      visit(text);
      text.clear();
      if (texts.most > 0 && ++number >= texts.most) return absl::OkStatus();
    }
    text.push_back(std::move(example));
  }
  if (!text.empty()) visit(text);
  return absl::OkStatus();
}

// Texts as counts of tokens, and what they should be given.
struct CountedTexts {
  SparseRows rows;
  std::vector<Example> answers;  // labels or values only
};

absl::StatusOr<CountedTexts> CountTokens(const Texts& of, const Tokenizer& tokenizer) {
  CountedTexts texts;
  texts.rows.features = tokenizer.vocab_size();
  RETURN_IF_ERROR(ForTexts(of, [&](const std::vector<Example>& text) {
    std::map<int32_t, float> counts;
    for (const Example& window : text) {
      for (const int32_t id : window.ids)
        if (!tokenizer.is_special(id)) ++counts[id];
    }
    texts.rows.Add(std::vector<std::pair<int32_t, float>>(counts.begin(), counts.end()));
    Example& answer = texts.answers.emplace_back();
    answer.labels = text[0].labels, answer.values = text[0].values;
  }));
  return texts;
}

// The tokens that are features, and their weights.
class Features {
 public:
  // At most `most` features: the tokens that the most of these texts have.
  Features(const SparseRows& texts, int64_t most) : feature_(texts.features, -1) {
    std::vector<int64_t> counts(texts.features);
    for (const int32_t token : texts.index) ++counts[token];
    std::vector<int32_t> tokens;
    for (int32_t token = 0; token < texts.features; ++token)
      if (counts[token] > 0) tokens.push_back(token);
    std::stable_sort(
        tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) { return counts[a] > counts[b]; });
    tokens.resize(std::min<int64_t>(most, static_cast<int64_t>(tokens.size())));
    for (const int32_t token : tokens) {
      feature_[token] = static_cast<int32_t>(weights_.size());
      weights_.push_back(std::log((1.0 + static_cast<double>(texts.rows())) / counts[token]));
    }
  }
  int64_t size() const { return static_cast<int64_t>(weights_.size()); }

  // Returns rows of length 1 in place of counts.
  SparseRows Weigh(const SparseRows& counts) const {
    SparseRows rows = {.features = size()};
    for (int64_t r = 0; r < counts.rows(); ++r) {
      std::vector<std::pair<int32_t, float>> row;
      double squares = 0;
      for (int64_t i = counts.begin(r); i < counts.ends[r]; ++i) {
        const int32_t feature = feature_[counts.index[i]];
        if (feature < 0) continue;
        const double x = std::log1p(counts.value[i]) * weights_[feature];
        row.emplace_back(feature, static_cast<float>(x));
        squares += x * x;
      }
      for (auto& [feature, x] : row) x = static_cast<float>(x / std::sqrt(squares));
      rows.Add(row);
    }
    return rows;
  }

 private:
  std::vector<int32_t> feature_;  // of each token; -1: none
  std::vector<double> weights_;   // of features
};

// Returns the score of predictions for all held-out texts. `scores_of(r)` gives the scores of text
// r.
double ScoreTexts(Kind kind, const std::vector<std::string>& labels,
    const std::vector<Example>& answers,
    absl::FunctionRef<std::vector<double>(int64_t r)> scores_of) {
  ClassificationMetric single(labels);
  MultiLabelMetric several(labels);
  RegressionMetric number;
  for (size_t r = 0; r < answers.size(); ++r) {
    const std::vector<double> scores = scores_of(static_cast<int64_t>(r));
    std::vector<float> values = answers[r].values;
    if (kind == SequenceClassificationSpec::REGRESSION) {
      number.Add(values[0], scores[0]);
    } else if (kind == SequenceClassificationSpec::SINGLE_LABEL) {
      const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      single.Add(answers[r].labels[0], static_cast<int>(best));
    } else {  // the last value stands for labels that the model does not have
      std::vector<bool> chosen;
      for (const double score : scores) chosen.push_back(score >= 0);
      const bool unseen = values.size() > scores.size() && values.back() > 0;
      values.resize(scores.size());
      several.Add(values, chosen, unseen);
    }
  }
  const MetricResults results = kind == SequenceClassificationSpec::REGRESSION ? number.Results()
                                : kind == SequenceClassificationSpec::SINGLE_LABEL
                                    ? single.Results()
                                    : several.Results();
  return results.values[0].second;
}

// The targets of FitLinear, [texts, outputs].
std::vector<float> TargetsOf(Kind kind, size_t outputs, const std::vector<Example>& answers) {
  std::vector<float> targets;
  for (const Example& answer : answers) {
    std::vector<float> row = answer.values;
    if (kind == SequenceClassificationSpec::SINGLE_LABEL) {
      row.assign(outputs, 0);
      row[answer.labels[0]] = 1;
    }
    targets.insert(targets.end(), row.begin(), row.end());
  }
  return targets;
}

// Returns scores of the best constant answer, [outputs]: the most frequent label of the held-out
// texts; of several labels, those that most training texts have, at least one.
std::vector<double> ConstantScores(Kind kind, size_t outputs, absl::Span<const float> targets,
    const std::vector<Example>& held_out) {
  std::vector<double> scores(outputs, -0.5);  // share of each label - 1/2
  if (kind == SequenceClassificationSpec::SINGLE_LABEL) {
    for (const Example& answer : held_out)
      if (static_cast<size_t>(answer.labels[0]) < outputs) ++scores[answer.labels[0]];
    return scores;
  }
  const double texts = static_cast<double>(targets.size() / outputs);
  for (size_t i = 0; i < targets.size(); ++i) scores[i % outputs] += targets[i] / texts;
  *std::max_element(scores.begin(), scores.end()) += 1;
  return scores;
}

absl::StatusOr<Baselines> OfTexts(Kind kind, const std::vector<std::string>& labels,
    const Tokenizer& tokenizer, const Texts& train, const Texts& validation) {
  ASSIGN_OR_RETURN(const CountedTexts known, CountTokens(train, tokenizer));
  ASSIGN_OR_RETURN(const CountedTexts held_out, CountTokens(validation, tokenizer));
  const bool single = kind == SequenceClassificationSpec::SINGLE_LABEL,
             number = kind == SequenceClassificationSpec::REGRESSION;
  const size_t outputs = labels.size();
  const std::vector<float> targets = TargetsOf(kind, outputs, known.answers);
  const std::vector<double> constant = ConstantScores(kind, outputs, targets, held_out.answers);
  Baselines result = {.metric = single   ? "accuracy"
                                : number ? "pearson"
                                         : "micro_f1",
      .examples = held_out.rows.rows()};
  if (!number)
    result.most_frequent =
        ScoreTexts(kind, labels, held_out.answers, [&](int64_t) { return constant; });
  const int64_t most = kMaxWeights / static_cast<int64_t>(outputs);
  if (most < kMinFeatures) return result;
  const Features features(known.rows, most);
  const SparseRows rows = features.Weigh(known.rows), others = features.Weigh(held_out.rows);
  const LinearModel model = FitLinear({.rows = rows,
      .targets = targets,
      .outputs = static_cast<int64_t>(outputs),
      .loss = single   ? LinearLoss::kSoftmax
              : number ? LinearLoss::kSquared
                       : LinearLoss::kLogistic,
      .penalty = kPenalty});
  result.words = ScoreTexts(
      kind, labels, held_out.answers, [&](int64_t r) { return model.Scores(others, r); });
  return result;
}

// The pieces of the word with label i.
std::vector<int32_t> WordAt(const Example& window, size_t i) {
  const auto first = window.ids.begin() + window.rows[i];
  return {first, first + 1 + (window.further.empty() ? 0 : window.further[i])};
}

using TagCounts = std::map<int, int64_t>;

int MostFrequent(const TagCounts& counts) {
  return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.second < b.second;
  })->first;
}

absl::StatusOr<Baselines> OfTags(
    const std::vector<std::string>& labels, const Texts& train, const Texts& validation) {
  HashMap<std::vector<int32_t>, TagCounts> words;
  TagCounts all;
  RETURN_IF_ERROR(ForTexts(train, [&](const std::vector<Example>& text) {
    for (const Example& window : text) {
      for (size_t i = 0; i < window.labels.size(); ++i)
        ++words[WordAt(window, i)][window.labels[i]], ++all[window.labels[i]];
    }
  }));
  if (all.empty()) return Baselines();
  // Labels that the model does not have follow its own.
  const size_t known = labels.size();
  const std::vector<std::string> unseen(
      std::max<size_t>(validation.store.header().label_count(), known) - known, "?");
  TaggingMetric of_words(labels, unseen), of_all(labels, unseen);
  Baselines result = {.metric = IsBio(labels) ? "span_f1" : "accuracy"};
  const int usual = MostFrequent(all);
  RETURN_IF_ERROR(ForTexts(validation, [&](const std::vector<Example>& text) {
    std::vector<int> right, guess, further;
    for (const Example& window : text) {
      for (size_t i = 0; i < window.labels.size(); ++i) {
        const auto found = words.find(WordAt(window, i));
        right.push_back(window.labels[i]);
        guess.push_back(found == words.end() ? usual : MostFrequent(found->second));
        further.push_back(0);
      }
    }
    result.examples += static_cast<int64_t>(right.size());
    of_words.Add(right, guess, further);
    of_all.Add(right, std::vector<int>(right.size(), usual), further);
  }));
  ASSIGN_OR_RETURN(result.words, of_words.Results().Value(result.metric));
  ASSIGN_OR_RETURN(result.most_frequent, of_all.Results().Value(result.metric));
  return result;
}

}  // namespace

absl::StatusOr<Baselines> MeasureBaselines(const TaskSpec& spec, const ModelConfig& config,
    const Tokenizer& tokenizer, const ExampleStore& train, const ExampleStore& validation,
    const std::atomic<bool>* stop) {
  const auto parts = [](int64_t size, int64_t most) { return (size + most - 1) / most; };
  const auto labels = static_cast<int64_t>(std::max<size_t>(config.labels.size(), 1));
  const int64_t by_tokens = parts(train.tokens(), kMaxFitTokens),
                by_scores = spec.has_token_tagging() ? 1 : parts(train.size() * labels, kMaxScores);
  const Texts known = {train, std::max<int64_t>({by_tokens, by_scores, 1}), 0, stop},
              held_out = {validation, 1, spec.evaluation().max_examples(), stop};
  if (spec.has_token_tagging()) return OfTags(config.labels, known, held_out);
  if (!spec.has_sequence_classification()) return Baselines();
  const Kind kind = spec.sequence_classification().kind();
  return OfTexts(kind, config.labels, tokenizer, known, held_out);
}

}  // namespace cloze
