#include "tasks/text_metrics.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "tasks/probabilities.h"
#include "tasks/scores.h"
#include "tasks/wrong_texts.h"

namespace cloze {
namespace {

using Spec = SequenceClassificationSpec;

// Most logits that are kept for AUC and for fitting. With more, AUC is NaN.
constexpr size_t kMaxLogits = size_t{1} << 24;
constexpr int64_t kMaxAnswers = 1'000'000;

// The texts that are kept for AUC and for fitting.
struct KeptTexts {
  std::vector<float> logits, values;  // [texts, labels]
  std::vector<int32_t> targets;       // [texts] labels; of several: 1 if one is unseen
};

struct LossSums {
  double sum = 0;
  int64_t texts = 0;  // whose label the model has
};

class TextMetrics : public TextEvaluation {
 public:
  TextMetrics(const Model& model, const Spec& spec, const Decision& decision,
      const DecodeOptions& options, const std::vector<std::string>& labels,
      const Tokenizer* tokenizer)
      : TextEvaluation(model), spec_(spec), decision_(decision), options_(options), labels_(labels),
        tokenizer_(tokenizer), single_(labels), several_(labels), wrong_(options.errors) {}

 private:
  bool single() const { return decision_.kind == Spec::SINGLE_LABEL; }
  bool several() const { return decision_.kind == Spec::MULTI_LABEL; }

  void AddText(const TextLogits& text) override {
    const Example& example = text.windows.front();
    const std::vector<float> mean = MeanLogits(text);
    ++texts_;
    if (decision_.kind == Spec::REGRESSION) return number_.Add(example.values[0], mean[0]);
    if (single()) KeepIfWrong(example, mean);
    if (single() && options_.fit && texts_ <= kMaxAnswers)
      answers_.emplace_back(example.labels[0], BestIndex(mean));
    std::vector<float> values = example.values;
    const int32_t target = single() ? example.labels[0] : values.back() > 0;
    if (several()) values.pop_back();
    if (scored_ > 0 || kept_.logits.size() + mean.size() > kMaxLogits) {
      ScoreKept();
      return Score(mean, target, values);
    }
    kept_.logits.insert(kept_.logits.end(), mean.begin(), mean.end());
    kept_.targets.push_back(target);
    kept_.values.insert(kept_.values.end(), values.begin(), values.end());
  }

  // Fits what the spec asks for to the texts that are kept, then scores them.
  void ScoreKept() {
    if (scored_ > 0) return;
    if (options_.fit) Fit();
    const size_t n = labels_.size();
    for (size_t at = 0; at < kept_.logits.size(); at += n) {
      const auto row = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + at, all.begin() + at + n);
      };
      Score(row(kept_.logits), kept_.targets[at / n],
          several() ? row(kept_.values) : std::vector<float>());
    }
  }
  void Fit() {
    const size_t n = labels_.size();
    if (spec_.calibrate()) {
      decision_.temperature = single() ? FitTemperature(kept_.logits, n, kept_.targets)
                                       : FitTemperature(kept_.logits, kept_.values);
    }
    if (!several() || spec_.thresholds() != Spec::BEST) return;
    for (size_t l = 0; l < n; ++l) {
      std::vector<float> column;
      for (size_t i = l; i < kept_.logits.size(); i += n)
        column.push_back(Logistic(kept_.logits[i] / decision_.temperature));
      decision_.thresholds[l] = BestThreshold(column, Positives(l), spec_.threshold());
    }
  }

  void Score(std::vector<float> mean, int32_t target, const std::vector<float>& values) {
    const int64_t n = mean.size();
    std::vector<float> scaled = mean;
    for (float& x : scaled) x /= decision_.temperature;
    const Mat logits = {scaled.data(), 1, n, n, DType::kF32};
    ++scored_;
    if (several()) {
      ++loss_.texts;
      loss_.sum += BinaryCrossEntropy(logits, values.data(), 0, arena_).loss;
    } else if (target < n) {  // else a label that the model does not have
      ++loss_.texts;
      loss_.sum += SoftmaxCrossEntropy(logits, &target, 0, arena_).loss;
    }
    decision_.ToProbabilities(&mean);
    if (several()) {
      several_.Add(values, decision_.Chosen(mean), target > 0);
      for (int64_t l = 0; l < n; ++l) calibration_.Add(mean[l], values[l] > 0);
    } else {
      const int best = static_cast<int>(BestIndex(mean));
      single_.Add(target, best);
      calibration_.Add(mean[best], best == target);
    }
  }

  void KeepIfWrong(const Example& example, const std::vector<float>& mean) {
    const int64_t best = BestIndex(mean);
    if (best == example.labels[0]) return;
    const double score = ScoreOf(mean, best);
    if (wrong_.Keeps(score))
      wrong_.Add({texts_, 0, example.labels[0], best, score, example.ids, {}, mean});
  }
  double ScoreOf(std::vector<float> logits, int64_t label) const {
    decision_.ToProbabilities(&logits);
    return logits[label];
  }
  std::string Errors() {  // with the temperature that was fitted after the texts were kept
    for (WrongText& text : wrong_.texts()) text.score = ScoreOf(text.logits, text.predicted);
    return wrong_.ToJson(labels_, tokenizer_);
  }

  std::string AnswersJson() const {
    OrderedJson json = {{"labels", labels_}};
    for (const auto& [target, predicted] : answers_) {
      json["true"].push_back(target);
      json["predicted"].push_back(predicted);
    }
    return ToJsonLine(json);
  }
  std::vector<bool> Positives(size_t label) const {
    std::vector<bool> positive;
    const size_t n = labels_.size();
    for (size_t i = 0; i < kept_.logits.size() / n; ++i)
      positive.push_back(
          single() ? kept_.targets[i] == static_cast<int>(label) : kept_.values[i * n + label] > 0);
    return positive;
  }
  // With two labels, the AUC of the second; else the mean over the labels whose AUC is defined.
  double Auc() const {
    const size_t n = labels_.size();
    if (scored_ * n > kept_.logits.size()) return kNaN;
    const double factor = 1 / decision_.temperature;
    std::vector<double> norms;  // of each text: log sum exp, so that factor logit - norm is log p
    for (size_t i = 0; i < kept_.logits.size(); i += n)
      norms.push_back(single() ? LogSumExp(absl::MakeConstSpan(&kept_.logits[i], n), factor) : 0);
    double sum = 0, count = 0;
    for (size_t l = single() && n == 2 ? 1 : 0; l < n; ++l) {
      std::vector<double> scores;
      for (size_t i = 0; i < norms.size(); ++i)
        scores.push_back(kept_.logits[i * n + l] * factor - norms[i]);
      const double auc = AreaUnderCurve(scores, Positives(l));
      if (!std::isnan(auc)) sum += auc, ++count;
    }
    return count > 0 ? sum / count : kNaN;
  }

  MetricResults Count() override {
    if (decision_.kind == Spec::REGRESSION) return number_.Results();
    ScoreKept();
    MetricResults results = single() ? single_.Results() : several_.Results();
    results.values.emplace_back("auc", Auc());
    results.values.emplace_back("ece", calibration_.Error());
    results.values.emplace_back("loss", loss_.sum / loss_.texts / (single() ? 1 : labels_.size()));
    if (options_.fit && spec_.calibrate())
      results.tables.emplace_back("temperature", JsonNumber(decision_.temperature));
    if (options_.fit && several() && spec_.thresholds() == Spec::BEST) {
      OrderedJson thresholds = OrderedJson::array();
      for (const float threshold : decision_.thresholds) thresholds.push_back(Decimal(threshold));
      results.tables.emplace_back("thresholds", thresholds.dump());
    }
    results.tables.emplace_back("calibration", calibration_.ToJson());
    if (single() && wrong_.enabled()) results.tables.emplace_back("errors", Errors());
    if (!answers_.empty() && texts_ <= kMaxAnswers) results.answers = AnswersJson();
    return results;
  }

  const Spec& spec_;
  Decision decision_;
  const DecodeOptions options_;
  const std::vector<std::string>& labels_;
  const Tokenizer* tokenizer_;
  ClassificationMetric single_;
  MultiLabelMetric several_;
  RegressionMetric number_;
  Calibration calibration_;
  KeptTexts kept_;
  std::vector<std::pair<int32_t, int64_t>> answers_;  // of each text: target, predicted label
  WrongTexts wrong_;
  Arena arena_;
  LossSums loss_;
  int64_t texts_ = 0, scored_ = 0;
};

}  // namespace

void Decision::ToProbabilities(std::vector<float>* logits) const {
  if (kind == Spec::REGRESSION) return;
  for (float& x : *logits) x /= temperature;
  if (kind == Spec::SINGLE_LABEL) return Softmax(logits->data(), logits->size());
  for (float& x : *logits) x = Logistic(x);
}

std::vector<bool> Decision::Chosen(const std::vector<float>& probabilities) const {
  std::vector<bool> chosen;
  for (size_t i = 0; i < probabilities.size(); ++i)
    chosen.push_back(probabilities[i] >= thresholds[i]);
  return chosen;
}

std::vector<float> MeanLogits(const TextLogits& text) {
  std::vector<float> mean(text.logits.cols);
  for (int64_t r = 0; r < text.logits.rows; ++r) {
    for (int64_t c = 0; c < text.logits.cols; ++c) mean[c] += text.logits.f32(r)[c];
  }
  for (float& x : mean) x /= static_cast<float>(text.logits.rows);
  return mean;
}

std::unique_ptr<Evaluation> NewTextMetrics(const Model& model, const Spec& spec,
    const Decision& decision, const DecodeOptions& options, const std::vector<std::string>& labels,
    const Tokenizer* tokenizer) {
  return std::make_unique<TextMetrics>(model, spec, decision, options, labels, tokenizer);
}

}  // namespace cloze
