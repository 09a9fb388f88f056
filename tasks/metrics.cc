#include "tasks/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"

namespace cloze {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLabelsOfCounts = 100;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// All in ASCII, so that a terminal is safe from the labels.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

double Ratio(double a, double b, double otherwise = 0) { return b == 0 ? otherwise : a / b; }

struct Scores {
  double precision, recall, f1;
};

Scores ScoresOf(int64_t right, int64_t labelled, int64_t predicted) {
  return {
      Ratio(right, predicted), Ratio(right, labelled), Ratio(2.0 * right, labelled + predicted)};
}

Json Row(const char* key, const std::string& name, const Scores& scores, int64_t support) {
  return {{key, name}, {"precision", scores.precision}, {"recall", scores.recall},
      {"f1", scores.f1}, {"support", support}};
}

// Pearson's correlation; NaN when either side is constant.
double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = x.size();
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n,
               mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return Ratio(xy, std::sqrt(xx) * std::sqrt(yy), kNaN);
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> Ranks(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin; end < order.size() && x[order[end]] == x[order[begin]];) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = (begin + 1 + end) / 2.0;
  }
  return ranks;
}

uint64_t Key(int label, int predicted) {
  return uint64_t{static_cast<uint32_t>(label)} << 32 | static_cast<uint32_t>(predicted);
}

MetricResults WordResults(const ConfusionMatrix& confusion) {
  MetricResults results;
  results.values = {{"accuracy", confusion.Accuracy()}, {"macro_f1", confusion.MacroF1()},
      {"mcc", confusion.Mcc()}};
  results.tables = {{"per_class", confusion.PerClassJson()}, {"confusion", confusion.CountsJson()}};
  return results;
}

}  // namespace

absl::StatusOr<double> MetricResults::Value(const std::string& name) const {
  CLOZE_CHECK(!values.empty());
  if (name.empty()) return values.front().second;
  std::vector<std::string> names;
  for (const auto& [known, value] : values) {
    if (known == name) return value;
    names.push_back(known);
  }
  return Error(Exit::kSpec, "evaluation.metric: there is no metric \"", Quote(name),
      "\"; this task has ", absl::StrJoin(names, ", "), DidYouMean(name, names));
}

std::string MetricResults::ToJson() const {
  std::vector<std::string> members;
  for (const auto& [name, value] : values)
    members.push_back(absl::StrCat(Dump(name), ":", Dump(value)));
  for (const auto& [name, json] : tables) members.push_back(absl::StrCat(Dump(name), ":", json));
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

std::string MetricResults::ToLine() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) {
    if (!std::isnan(value)) parts.push_back(absl::StrFormat("%s %.4g", name, value));
  }
  return absl::StrJoin(parts, ", ");
}

bool LargerIsBetter(const std::string& name) {
  return name != "loss" && name != "perplexity" && name != "bits_per_byte" && name != "mse" &&
         name != "mae";
}

bool IsBetter(const std::string& name, double value, double best) {
  if (std::isnan(value) || std::isnan(best)) return !std::isnan(value);
  return LargerIsBetter(name) ? value > best : value < best;
}

ConfusionMatrix::ConfusionMatrix(std::vector<std::string> labels)
    : labels_(std::move(labels)), right_(labels_.size()), true_(labels_.size()),
      predicted_(labels_.size()) {}

void ConfusionMatrix::Add(int label, int predicted) {
  CLOZE_CHECK(label >= 0 && label < labels_.size() && predicted >= 0 && predicted < labels_.size());
  ++counts_[Key(label, predicted)];
  ++true_[label];
  ++predicted_[predicted];
  ++total_;
  right_[label] += label == predicted;
  total_right_ += label == predicted;
}

int64_t ConfusionMatrix::count(int label, int predicted) const {
  const auto it = counts_.find(Key(label, predicted));
  return it == counts_.end() ? 0 : it->second;
}

double ConfusionMatrix::Accuracy() const { return Ratio(total_right_, total_, kNaN); }

double ConfusionMatrix::MacroF1() const {
  double sum = 0;
  int64_t present = 0;
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (true_[i] + predicted_[i] == 0) continue;
    sum += ScoresOf(right_[i], true_[i], predicted_[i]).f1;
    ++present;
  }
  return Ratio(sum, present, kNaN);
}

double ConfusionMatrix::Mcc() const {
  if (total_ == 0) return kNaN;
  // With shares instead of counts nothing overflows.
  const double n = total_;
  double both = 0, true_squares = 0, predicted_squares = 0;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const double t = true_[i] / n, p = predicted_[i] / n;
    both += t * p;
    true_squares += t * t;
    predicted_squares += p * p;
  }
  const double spread = (1 - true_squares) * (1 - predicted_squares);
  return spread <= 0 ? 0 : (total_right_ / n - both) / std::sqrt(spread);
}

std::string ConfusionMatrix::PerClassJson() const {
  Json rows = Json::array();
  for (size_t i = 0; i < labels_.size(); ++i)
    rows.push_back(
        Row("label", labels_[i], ScoresOf(right_[i], true_[i], predicted_[i]), true_[i]));
  return Dump(rows);
}

std::string ConfusionMatrix::CountsJson() const {
  if (labels_.size() > kMostLabelsOfCounts) return "null";
  Json counts = Json::array();
  for (size_t label = 0; label < labels_.size(); ++label) {
    Json row = Json::array();
    for (size_t predicted = 0; predicted < labels_.size(); ++predicted)
      row.push_back(count(label, predicted));
    counts.push_back(row);
  }
  return Dump({{"labels", labels_}, {"counts", counts}});
}

MetricResults ClassificationMetric::Results() const { return WordResults(confusion_); }

MultiLabelMetric::MultiLabelMetric(std::vector<std::string> labels)
    : labels_(std::move(labels)), right_(labels_.size()), true_(labels_.size()),
      predicted_(labels_.size()) {}

void MultiLabelMetric::Add(absl::Span<const float> labels, const std::vector<bool>& predicted) {
  CLOZE_CHECK(labels.size() == labels_.size() && predicted.size() == labels_.size());
  bool all = true;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const bool label = labels[i] > 0;
    right_[i] += label && predicted[i];
    true_[i] += label;
    predicted_[i] += predicted[i];
    all &= label == predicted[i];
  }
  ++total_;
  total_right_ += all;
}

MetricResults MultiLabelMetric::Results() const {
  Json rows = Json::array();
  int64_t right = 0, labelled = 0, predicted = 0, present = 0;
  double f1 = 0;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const Scores scores = ScoresOf(right_[i], true_[i], predicted_[i]);
    rows.push_back(Row("label", labels_[i], scores, true_[i]));
    right += right_[i], labelled += true_[i], predicted += predicted_[i];
    f1 += scores.f1;
    present += true_[i] + predicted_[i] > 0;
  }
  MetricResults results;
  results.values = {{"micro_f1", Ratio(2.0 * right, labelled + predicted, kNaN)},
      {"macro_f1", Ratio(f1, present, kNaN)}, {"accuracy", Ratio(total_right_, total_, kNaN)}};
  results.tables = {{"per_class", Dump(rows)}};
  return results;
}

void RegressionMetric::Add(double value, double predicted) {
  values_.push_back(value);
  predicted_.push_back(predicted);
}

MetricResults RegressionMetric::Results() const {
  double squares = 0, distances = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    const double error = predicted_[i] - values_[i];
    squares += error * error;
    distances += std::fabs(error);
  }
  const double n = values_.size();
  MetricResults results;
  results.values = {{"pearson", Correlation(values_, predicted_)},
      {"spearman", Correlation(Ranks(values_), Ranks(predicted_))},
      {"mse", Ratio(squares, n, kNaN)}, {"mae", Ratio(distances, n, kNaN)}};
  return results;
}

void MaskedLmMetric::Add(double loss_sum, int64_t correct, int64_t count) {
  loss_sum_ += loss_sum;
  correct_ += correct;
  count_ += count;
}

void MaskedLmMetric::AddText(int64_t tokens, int64_t bytes) {
  tokens_ += tokens;
  bytes_ += bytes;
}

MetricResults MaskedLmMetric::Results() const {
  const double loss = Ratio(loss_sum_, count_, kNaN);
  MetricResults results;
  results.values = {{"loss", loss}, {"perplexity", std::exp(loss)},
      {"accuracy", Ratio(correct_, count_, kNaN)},
      {"bits_per_byte", loss * Ratio(tokens_, bytes_ * std::log(2.0), kNaN)}};
  results.tables = {{"masked_tokens", absl::StrCat(count_)}};
  return results;
}

TaggingMetric::TaggingMetric(std::vector<std::string> labels) : confusion_(std::move(labels)) {
  if (!IsBio(confusion_.labels())) return;
  tags_.emplace(confusion_.labels());
  lenient_.resize(tags_->types().size());
  strict_.resize(tags_->types().size());
}

void TaggingMetric::Add(absl::Span<const int> labels, absl::Span<const int> predicted) {
  CLOZE_CHECK(labels.size() == predicted.size());
  for (size_t i = 0; i < labels.size(); ++i) confusion_.Add(labels[i], predicted[i]);
  if (!tags_.has_value()) return;
  Count(tags_->Lenient(labels), tags_->Lenient(predicted), &lenient_);
  Count(tags_->Strict(labels), tags_->Strict(predicted), &strict_);
}

void TaggingMetric::Count(const std::vector<TagSpan>& labels, const std::vector<TagSpan>& predicted,
    std::vector<SpanCounts>* counts) {
  for (const TagSpan& span : predicted) ++(*counts)[span.type].predicted;
  size_t at = 0;  // both are in the order of their begins, which are distinct
  for (const TagSpan& span : labels) {
    ++(*counts)[span.type].labelled;
    while (at < predicted.size() && predicted[at].begin < span.begin) ++at;
    (*counts)[span.type].right += at < predicted.size() && predicted[at] == span;
  }
}

TaggingMetric::SpanCounts TaggingMetric::Sum(const std::vector<SpanCounts>& counts) {
  SpanCounts sum;
  for (const SpanCounts& c : counts)
    sum = {sum.right + c.right, sum.labelled + c.labelled, sum.predicted + c.predicted};
  return sum;
}

MetricResults TaggingMetric::Results() const {
  MetricResults results = WordResults(confusion_);
  if (!tags_.has_value()) return results;
  const SpanCounts lenient = Sum(lenient_), strict = Sum(strict_);
  const Scores scores = ScoresOf(lenient.right, lenient.labelled, lenient.predicted);
  results.values.insert(results.values.begin(),
      {{"span_f1", scores.f1}, {"span_precision", scores.precision}, {"span_recall", scores.recall},
          {"strict_span_f1", ScoresOf(strict.right, strict.labelled, strict.predicted).f1}});
  Json types = Json::array();
  for (size_t i = 0; i < lenient_.size(); ++i) {
    const SpanCounts& c = lenient_[i];
    types.push_back(
        Row("type", tags_->types()[i], ScoresOf(c.right, c.labelled, c.predicted), c.labelled));
  }
  results.tables.insert(results.tables.begin(), {"per_type", Dump(types)});
  return results;
}

}  // namespace cloze
