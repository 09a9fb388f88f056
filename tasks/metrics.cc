#include "tasks/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr size_t kMaxConfusionLabels = 100;

// All in ASCII, so that a terminal is safe from the labels.
std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

double Ratio(double a, double b, double fallback = kNaN) { return b == 0 ? fallback : a / b; }

bool IsConstant(const std::vector<double>& x) {
  return std::adjacent_find(x.begin(), x.end(), std::not_equal_to<>()) == x.end();
}

// Pearson's correlation; NaN when either side is constant. The sums of squares do not tell: the
// mean of 0.1, 0.1 and 0.1 is not 0.1.
double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
  if (IsConstant(x) || IsConstant(y)) return kNaN;
  const double n = x.size();
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n,
               mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return std::clamp(Ratio(xy, std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

// Adds the spans of a sentence.
void CountSpans(const std::vector<TagSpan>& labels, const std::vector<TagSpan>& predicted,
    std::vector<ClassCount>* counts) {
  for (const TagSpan& span : predicted) ++(*counts)[span.type].predicted;
  size_t at = 0;  // both are in the order of their begins, which are distinct
  for (const TagSpan& span : labels) {
    ++(*counts)[span.type].labelled;
    while (at < predicted.size() && predicted[at].begin < span.begin) ++at;
    (*counts)[span.type].right += at < predicted.size() && predicted[at] == span;
  }
}

// Unseen labels of another scheme count as O.
std::optional<SpanTags> TagsOf(
    std::vector<std::string> labels, const std::vector<std::string>& unseen) {
  if (!IsBio(labels)) return std::nullopt;
  const size_t known = labels.size();
  for (const std::string& label : unseen) labels.push_back(IsBioTag(label) ? label : "O");
  return SpanTags(labels, known);
}

absl::Status UnknownMetric(const std::string& name, const std::vector<std::string>& names) {
  return Error(Exit::kSpec, "unknown metric \"", Quote(name), "\": expected one of ",
      absl::StrJoin(names, ", "), DidYouMean(name, names));
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
  return UnknownMetric(name, names);
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
  for (const auto& [name, json] : tables) {
    if (name == "unseen_labels") parts.push_back(absl::StrCat(name, " ", json));
  }
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<Metric> FindMetric(absl::Span<const Metric> metrics, const std::string& name) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  return UnknownMetric(name, names);
}

bool IsBetter(const Metric& metric, double value, double best) {
  if (std::isnan(value) || std::isnan(best)) return !std::isnan(value);
  return metric.better == Better::kSmaller ? value < best : value > best;
}

ModelScore ScoreOf(const MetricResults& results, const std::string& metric) {
  ModelScore score;
  for (const auto& [name, value] : results.values) {
    if (name == metric) score.value = value;
    if (name == "loss") score.loss = value;
  }
  return score;
}

int CompareModels(const Metric& metric, const ModelScore& a, const ModelScore& b) {
  if (IsBetter(metric, a.value, b.value)) return 1;
  if (IsBetter(metric, b.value, a.value)) return -1;
  return (a.loss < b.loss) - (a.loss > b.loss);
}

double ClassCount::Precision() const { return Ratio(right, predicted, 0); }
double ClassCount::Recall() const { return Ratio(right, labelled, 0); }
double ClassCount::F1() const { return Ratio(2.0 * right, labelled + predicted, 0); }

ClassCounts::ClassCounts(std::vector<std::string> classes)
    : names(std::move(classes)), counts(names.size()) {}

ClassCount ClassCounts::Sum() const {
  ClassCount sum;
  for (const ClassCount& c : counts)
    sum = {sum.right + c.right, sum.labelled + c.labelled, sum.predicted + c.predicted};
  return sum;
}

ClassCounts ClassCounts::Occurring() const {
  ClassCounts some({});
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i].occurs()) continue;
    some.names.push_back(names[i]);
    some.counts.push_back(counts[i]);
  }
  return some;
}

double ClassCounts::MacroF1() const {
  double sum = 0;
  for (const ClassCount& c : counts) sum += c.F1();
  return Ratio(sum, counts.size());
}

std::string ClassCounts::ToJson(const char* key) const {
  OrderedJson rows = OrderedJson::array();
  for (size_t i = 0; i < counts.size(); ++i) {
    const ClassCount& c = counts[i];
    rows.push_back({{key, names[i]}, {"precision", c.Precision()}, {"recall", c.Recall()},
        {"f1", c.F1()}, {"support", c.labelled}});
  }
  return Dump(rows);
}

void ClassificationMetric::Add(int label, int predicted) {
  const auto labels = static_cast<int>(labels_);
  CLOZE_CHECK(label >= 0 && predicted >= 0 && predicted < labels);
  for (size_t i = classes_.names.size(); i <= static_cast<size_t>(label); ++i) {
    const size_t number = i - labels_;
    classes_.names.push_back(number < unseen_names_.size()
                                 ? unseen_names_[number]
                                 : absl::StrCat("(unseen label ", number + 1, ")"));
    classes_.counts.emplace_back();
  }
  if (label < labels) ++pairs_[{label, predicted}];
  unseen_ += label >= labels;
  ++classes_.counts[label].labelled;
  ++classes_.counts[predicted].predicted;
  classes_.counts[label].right += label == predicted;
}

// Matthews correlation for any number of labels (Gorodkin's R_K): 1 is perfect, 0 as good as
// chance; 0 when either side has one label only.
double ClassificationMetric::Mcc() const {
  const ClassCount sum = classes_.Sum();
  if (sum.labelled == 0) return kNaN;
  // With shares instead of counts nothing overflows.
  const double n = sum.labelled;
  double both = 0, labelled_squares = 0, predicted_squares = 0;
  for (const ClassCount& c : classes_.counts) {
    const double t = c.labelled / n, p = c.predicted / n;
    both += t * p;
    labelled_squares += t * t;
    predicted_squares += p * p;
  }
  const double spread = (1 - labelled_squares) * (1 - predicted_squares);
  return spread <= 0 ? 0 : (sum.right / n - both) / std::sqrt(spread);
}

// {"labels": [...], "counts": [[...], ...]}, a row for each true label; null for many labels.
std::string ClassificationMetric::ConfusionJson() const {
  if (labels_ > kMaxConfusionLabels) return "null";
  const std::vector<std::string> names(classes_.names.begin(), classes_.names.begin() + labels_);
  std::vector<std::vector<int64_t>> counts(labels_, std::vector<int64_t>(labels_));
  for (const auto& [pair, count] : pairs_) counts[pair.first][pair.second] = count;
  return Dump({{"labels", names}, {"counts", counts}});
}

MetricResults ClassificationMetric::Results() const {
  const ClassCount sum = classes_.Sum();
  const ClassCounts occurring = classes_.Occurring();
  MetricResults results = {{{"accuracy", Ratio(sum.right, sum.labelled)},
                               {"macro_f1", occurring.MacroF1()}, {"mcc", Mcc()}},
      {{"per_class", occurring.ToJson("label")}, {"confusion", ConfusionJson()}}};
  if (unseen_ > 0) results.tables.emplace_back("unseen_labels", absl::StrCat(unseen_));
  return results;
}

void MultiLabelMetric::Add(
    absl::Span<const float> labels, const std::vector<bool>& predicted, bool unseen) {
  CLOZE_CHECK(labels.size() == classes_.names.size() && predicted.size() == labels.size());
  bool all = !unseen;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool label = labels[i] > 0;
    ClassCount& count = classes_.counts[i];
    count.right += label && predicted[i];
    count.labelled += label;
    count.predicted += predicted[i];
    all &= label == predicted[i];
  }
  ++texts_;
  right_ += all;
  unseen_ += unseen;
}

MetricResults MultiLabelMetric::Results() const {
  ClassCount sum = classes_.Sum();
  sum.labelled += unseen_;
  const bool any = texts_ > 0;
  MetricResults results = {
      {{"micro_f1", any ? sum.F1() : kNaN}, {"macro_f1", any ? classes_.MacroF1() : kNaN},
          {"accuracy", Ratio(right_, texts_)}},
      {{"per_class", classes_.ToJson("label")}}};
  if (unseen_ > 0) results.tables.emplace_back("unseen_labels", absl::StrCat(unseen_));
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
  return {{{"pearson", Correlation(values_, predicted_)},
      {"spearman", Correlation(MeanRanks(values_), MeanRanks(predicted_))},
      {"mse", Ratio(squares, n)}, {"mae", Ratio(distances, n)}}};
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
  const double loss = Ratio(loss_sum_, count_);
  return {{{"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", Ratio(correct_, count_)},
              {"bits_per_byte", loss * Ratio(tokens_, bytes_ * std::log(2.0))}},
      {{"masked_tokens", absl::StrCat(count_)}}};
}

TaggingMetric::TaggingMetric(
    const std::vector<std::string>& labels, const std::vector<std::string>& unseen)
    : words_(labels, unseen), tags_(TagsOf(labels, unseen)),
      lenient_(tags_.has_value() ? tags_->types() : std::vector<std::string>()),
      strict_(lenient_.names) {}

void TaggingMetric::Add(
    absl::Span<const int> labels, absl::Span<const int> predicted, absl::Span<const int> further) {
  CLOZE_CHECK(labels.size() == predicted.size() && further.size() == labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    words_.Add(labels[i], predicted[i]);
    multi_piece_ += further[i] > 0;
    multi_piece_right_ += further[i] > 0 && labels[i] == predicted[i];
  }
  if (!tags_.has_value()) return;
  CountSpans(tags_->Lenient(labels), tags_->Lenient(predicted), &lenient_.counts);
  CountSpans(tags_->Strict(labels), tags_->Strict(predicted), &strict_.counts);
}

MetricResults TaggingMetric::Results() const {
  MetricResults results = words_.Results();
  if (multi_piece_ > 0) {
    results.values.insert(results.values.begin() + 1,
        {"accuracy_multi_piece", Ratio(multi_piece_right_, multi_piece_)});
    results.tables.emplace_back("multi_piece_words", absl::StrCat(multi_piece_));
  }
  if (!tags_.has_value()) return results;
  const ClassCount spans = lenient_.Sum();
  results.values.insert(results.values.begin(),
      {{"span_f1", spans.F1()}, {"span_precision", spans.Precision()},
          {"span_recall", spans.Recall()}, {"strict_span_f1", strict_.Sum().F1()}});
  results.tables.insert(results.tables.begin(), {"per_type", lenient_.Occurring().ToJson("type")});
  return results;
}

}  // namespace cloze
