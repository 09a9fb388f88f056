// Metrics of predictions, which are added one by one. Memory does not grow with the data (except
// for Spearman's correlation).
#ifndef CLOZE_TASKS_METRICS_H_
#define CLOZE_TASKS_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "tasks/scores.h"
#include "tasks/tags.h"

namespace cloze {

// Named numbers, and tables for people and JSON readers.
struct MetricResults {
  // In output order. The first one selects the best model unless the spec names another. NaN:
  // nothing was counted.
  std::vector<std::pair<std::string, double>> values = {};
  // Tables (per_class, per_type, confusion ...), each as JSON text.
  std::vector<std::pair<std::string, std::string>> tables = {};
  // The answers of one label a text, for a comparison with other models: {"labels": names, "true":
  // their indices, "predicted": their indices}. Indices from labels.size() on stand for labels that
  // the model does not have. Not in ToJson. "": not known, or above a million texts.
  std::string answers = {};

  // Returns the value called `name`, or the first for an empty name. kSpec, with the known names,
  // if there is none.
  absl::StatusOr<double> Value(const std::string& name) const;
  // One JSON object: the values, then the tables. NaN becomes null. Without line breaks.
  std::string ToJson() const;
  // "accuracy 0.912, macro_f1 0.903": the values, and unseen_labels if there are any, for a line of
  // progress.
  std::string ToLine() const;
};

// The direction of better values.
enum class Better : uint8_t { kLarger, kSmaller };

// The name of a metric and its direction, which every list of metrics has to state.
struct Metric {
  std::string name;
  Better better;
};

// Returns the metric called `name`. kSpec, with the known names, if there is none.
absl::StatusOr<Metric> FindMetric(absl::Span<const Metric> metrics, const std::string& name);

// True if `value` of `metric` is better than `best`. NaN is never better, and any number is better
// than NaN.
bool IsBetter(const Metric& metric, double value, double best);

// The values of an evaluation by which models are compared.
struct ModelScore {
  double value = kNaN;  // of the metric that decides
  double loss = kNaN;   // on the same data; NaN: unknown
};

// Returns the score of the model with these results; NaN for what they lack.
ModelScore ScoreOf(const MetricResults& results, const std::string& metric);

// Returns 1 if `a` is better than `b`, -1 if it is worse, and 0 if neither is. The metric decides,
// and any number is better than NaN. If the values are equal, the lower loss decides, unless one is
// NaN. If neither is better, a run keeps the later model, and several runs the first one.
int CompareModels(const Metric& metric, const ModelScore& a, const ModelScore& b);

// Counts of items for one class: labelled with it, predicted as it, and both (`right`).
struct ClassCount {
  int64_t right = 0, labelled = 0, predicted = 0;
  double Precision() const;
  double Recall() const;
  double F1() const;  // 0 if no item is labelled or predicted
  bool occurs() const { return labelled + predicted > 0; }
};

// Counts of named classes.
struct ClassCounts {
  std::vector<std::string> names;
  std::vector<ClassCount> counts;

  explicit ClassCounts(std::vector<std::string> classes);
  ClassCount Sum() const;
  // Returns those of the classes that occur in the data or in the predictions.
  ClassCounts Occurring() const;
  // Mean F1 of all classes; NaN if there are none.
  double MacroF1() const;
  // [{key: name, "precision", "recall", "f1", "support"}, ...]
  std::string ToJson(const char* key) const;
};

// sequence_classification of one label: accuracy, macro_f1, mcc; tables per_class, confusion, and
// unseen_labels, the texts whose label the model does not have (wrong in all values). macro_f1 is
// the mean over per_class: the labels that occur in the data or in the predictions, as in
// scikit-learn. Holds only pairs of labels that occur, so that many labels cost nothing.
class ClassificationMetric {
 public:
  // `unseen`: names of further labels of the data, as far as they are known; their ids follow.
  explicit ClassificationMetric(
      std::vector<std::string> labels, std::vector<std::string> unseen = {})
      : labels_(labels.size()), unseen_names_(std::move(unseen)), classes_(std::move(labels)) {}
  // Requires 0 <= predicted < labels. `label` >= labels is one that the model does not have.
  void Add(int label, int predicted);
  MetricResults Results() const;

 private:
  double Mcc() const;
  std::string ConfusionJson() const;

  const size_t labels_;  // of the model
  const std::vector<std::string> unseen_names_;
  ClassCounts classes_;                           // also the unseen labels
  std::map<std::pair<int, int>, int64_t> pairs_;  // of label and predicted label
  int64_t unseen_ = 0;                            // labels that the model does not have
};

// sequence_classification of several labels: micro_f1 of all (text, label) pairs, macro_f1,
// accuracy (texts whose labels are all right); tables per_class and unseen_labels, the texts with
// labels that the model does not have (each counts as one missed label). macro_f1 is the mean over
// per_class: all labels of the model, as in scikit-learn, also those that occur nowhere.
class MultiLabelMetric {
 public:
  explicit MultiLabelMetric(std::vector<std::string> labels) : classes_(std::move(labels)) {}
  // Adds a text; [labels] each. `unseen`: the text has a label that the model does not have.
  void Add(absl::Span<const float> labels, const std::vector<bool>& predicted, bool unseen = false);
  MetricResults Results() const;

 private:
  ClassCounts classes_;
  int64_t texts_ = 0, right_ = 0, unseen_ = 0;
};

// sequence_classification of a number: Pearson's and Spearman's correlation (ties have their mean
// rank) of values and predictions, mean squared error and mean absolute error. Correlations are NaN
// when either side is constant. Keeps all values: 16 bytes a text.
class RegressionMetric {
 public:
  void Add(double value, double predicted);
  MetricResults Results() const;

 private:
  std::vector<double> values_, predicted_;
};

// masked_lm: loss (nats per masked token), perplexity (e^loss), accuracy of the masked tokens, and
//
//   bits_per_byte = loss * tokens / (ln 2 * bytes),
//
// which applies the mean loss of masked tokens to all tokens that are not special. It is not a code
// length, but it compares models with different vocabularies on the same text at the same
// mask_share. NaN if no text was counted.
class MaskedLmMetric {
 public:
  // Sum of the losses of `count` masked tokens, `correct` of which were predicted right.
  void Add(double loss_sum, int64_t correct, int64_t count);
  // Adds the numbers of tokens and bytes of a text. masked_lm: of tokens that are not special;
  // decoders: of those that can be predicted.
  void AddText(int64_t tokens, int64_t bytes);
  MetricResults Results() const;

 private:
  double loss_sum_ = 0;
  int64_t correct_ = 0, count_ = 0, tokens_ = 0, bytes_ = 0;
};

// token_tagging: accuracy, accuracy_multi_piece (of words of more than one piece, if there are any;
// their number is the table multi_piece_words), macro_f1, mcc of words; when IsBio(labels) also
// span_f1 (first), span_precision and span_recall, read leniently as conlleval and seqeval do, and
// strict_span_f1. Tables per_class, per_type (lenient), confusion, and unseen_labels, the words
// whose label the model does not have (wrong in all values).
class TaggingMetric {
 public:
  // `unseen`: further labels of the data, which the model does not have; their ids follow.
  explicit TaggingMetric(
      const std::vector<std::string>& labels, const std::vector<std::string>& unseen = {});
  // Adds a sentence: for each word its label, its prediction and the number of its pieces after the
  // first.
  void Add(
      absl::Span<const int> labels, absl::Span<const int> predicted, absl::Span<const int> further);
  MetricResults Results() const;

 private:
  ClassificationMetric words_;
  std::optional<SpanTags> tags_;  // of all labels
  ClassCounts lenient_, strict_;  // of types
  int64_t multi_piece_ = 0, multi_piece_right_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_METRICS_H_
