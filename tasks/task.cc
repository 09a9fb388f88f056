#include "tasks/task.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "proto/spec.h"
#include "tasks/probabilities.h"

namespace cloze {

void WindowJoiner::Add(const Example& window, ConstMat logits) {
  if (!window.continues) Finish();
  windows_.push_back(window);
  labels_ = logits.cols;
  rows_ += logits.rows;
  for (int64_t r = 0; r < logits.rows; ++r)
    logits_.insert(logits_.end(), logits.f32(r), logits.f32(r) + logits.cols);
}

void WindowJoiner::Finish() {
  if (windows_.empty()) return;
  on_text_({windows_, View(static_cast<const float*>(logits_.data()), rows_, labels_)});
  windows_.clear();
  logits_.clear();
  rows_ = 0;
}

DataShape ShapeOfData(const DataStats& stats) {
  DataShape shape;
  if (stats.examples > 0) shape.mean_length = double(stats.tokens) / stats.examples;
  if (stats.words > 0 && stats.tokens > 0) shape.words = double(stats.words) / stats.tokens;
  return shape;
}

int64_t ShareOfRows(int64_t rows, double share) {
  return std::min<int64_t>(rows, std::ceil(share * rows) + 8);
}

absl::Status ForSomeExamples(
    const ExampleStore& store, absl::FunctionRef<void(const Example& example)> visit) {
  constexpr int64_t kMost = 100'000;
  Example example;
  for (int64_t i = 0; i < store.size(); i += (store.size() + kMost - 1) / kMost) {
    RETURN_IF_ERROR(store.Read(i, &example));
    visit(example);
  }
  return absl::OkStatus();
}

double Entropy(absl::Span<const double> counts) {
  double sum = 0, entropy = 0;
  for (const double count : counts) sum += count;
  for (const double count : counts) entropy -= count > 0 ? count / sum * std::log(count / sum) : 0;
  return entropy;
}

TextEvaluation::TextEvaluation(const Model& model)
    : model_(model), joiner_([this](const TextLogits& text) {
        AddText(text);
        if (on_text != nullptr) on_text(text);
      }) {}

Evaluation::Output TextEvaluation::Compute(const Pass& pass, ConstMat hidden) const {
  const int64_t rows = pass.batch.rows.size();
  const Mat logits = Rows(model_.head().Logits(pass, hidden), 0, rows);
  Output output;
  for (int64_t r = 0; r < rows; ++r)
    output.logits.insert(output.logits.end(), logits.f32(r), logits.f32(r) + logits.cols);
  output.sum = Loss(pass, logits, &output.targets);
  return output;
}

void TextEvaluation::Add(Output output, absl::Span<const Example> examples) {
  int64_t rows = 0, row = 0;
  for (const Example& example : examples) rows += example.rows.size();
  const int64_t labels = rows > 0 ? output.logits.size() / rows : 0;
  const ConstMat logits = View(output.logits.data(), rows, labels);
  for (const Example& example : examples) {
    joiner_.Add(example, Rows(logits, row, example.rows.size()));
    row += example.rows.size();
  }
  AddLoss(output.sum.loss, output.targets, examples.size());
}

MetricResults TextEvaluation::Results() {
  joiner_.Finish();
  return Count();
}

absl::Status Task::Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t) {
  labels_ = config.labels;
  tokenizer_ = tokenizer;
  return absl::OkStatus();
}

absl::StatusOr<LabelledReader> TaskData::OpenLabelled(const DataSpec&) const {
  return Error(Exit::kUsage,
      "predictions: a language model or encoder-decoder has none: expected a model that answers "
      "for each text (`cloze generate` writes targets)");
}

std::string Task::AnswerKey(const TextLogits& text) const {
  const ConstMat logits = text.logits;
  std::string key;
  for (int64_t r = 0; r < logits.rows; ++r)
    absl::StrAppend(&key, BestIndex({logits.f32(r), static_cast<size_t>(logits.cols)}), " ");
  return key;
}

LossSum Task::Loss(
    const Head&, const Pass& pass, Mat logits, int64_t first, float scale, Arena& arena) const {
  const int32_t* targets = pass.batch.targets.data() + first;
  const LabelWeights weights = {weights_, smoothing_};
  if (weights.plain()) return SoftmaxCrossEntropy(logits, targets, scale, arena);
  return WeightedCrossEntropy(logits, targets, weights, scale, arena);
}

double Task::LossWeight(const Batch& batch) const {
  if (weights_.empty()) return static_cast<double>(batch.targets.size());
  double sum = 0;
  for (const int32_t target : batch.targets) sum += weights_[target];
  return sum;
}

absl::StatusOr<double> Task::ChanceLossOfLabels(const ExampleStore& train) const {
  const auto weight = [&](size_t label) { return weights_.empty() ? 1.0 : weights_[label]; };
  std::vector<double> masses(labels_.size());
  double count = 0, weights = 0;
  RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
    for (const int32_t label : example.labels) {
      masses[label] += (1 - smoothing_) * weight(label);
      weights += weight(label);
      ++count;
    }
  }));
  // The loss of probabilities p is -sum(masses log p) / weights, least for p proportional to them.
  for (size_t l = 0; l < masses.size(); ++l)
    masses[l] += smoothing_ * weight(l) * count / static_cast<double>(masses.size());
  return Entropy(masses) * absl::c_accumulate(masses, 0.0) / weights;
}

absl::Status SetLabelWeight(const std::string& task, const std::string& label_weight,
    const std::vector<std::string>& labels, std::vector<float>* weights) {
  const auto parsed = ParseLabelWeight(label_weight);
  const auto label = parsed ? absl::c_find(labels, parsed->first) : labels.end();
  if (label == labels.end()) {
    return Error(Exit::kSpec, task, ".label_weights: \"", Quote(label_weight),
        "\": no such label: expected one of ", ListNames(labels));
  }
  weights->resize(labels.size(), 1);
  (*weights)[label - labels.begin()] = parsed->second;
  return absl::OkStatus();
}

absl::Status BalanceLabels(const ExampleStore& train, const std::vector<std::string>& labels,
    std::vector<float>* weights, std::vector<std::string>* notes) {
  std::vector<int64_t> counts(labels.size());
  int64_t total = 0;
  Example example;
  for (int64_t i = 0; i < train.size(); ++i) {
    RETURN_IF_ERROR(train.Read(i, &example));
    for (const int32_t label : example.labels) {
      ++counts[label];
      ++total;
    }
  }
  std::string line = "class weights:";
  for (size_t i = 0; i < counts.size(); ++i) {
    const double fair = double(labels.size()) * counts[i];
    weights->push_back(counts[i] > 0 ? static_cast<float>(double(total) / fair) : 1);
    if (i < 20) absl::StrAppend(&line, i > 0 ? ", " : " ", Quote(labels[i]), " ", weights->back());
  }
  notes->push_back(line + (counts.size() > 20 ? ", ..." : ""));
  return absl::OkStatus();
}

LossSum HeadLoss(const Task& task, const Head& head, const Pass& pass, ConstMat hidden, float scale,
    Mat dhidden) {
  return head.Loss(
      pass, hidden, scale, dhidden, [&](Mat logits, int64_t first, float gradient, Arena& arena) {
        return task.Loss(head, pass, logits, first, gradient, arena);
      });
}

// One factory for each task, defined in the task's file.
std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec);
std::unique_ptr<Task> MakeSequenceClassification(const SequenceClassificationSpec& spec);
std::unique_ptr<Task> MakeTokenTagging(const TokenTaggingSpec& spec);
std::unique_ptr<Task> MakeQuestionAnswering(const QuestionAnsweringSpec& spec);
std::unique_ptr<Task> MakeCausalLm(const CausalLmSpec& spec);
std::unique_ptr<Task> MakeSequenceToSequence(const SequenceToSequenceSpec& spec);

std::unique_ptr<Task> MakeTask(const TaskSpec& spec) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: return MakeMaskedLm(spec.masked_lm());
    case TaskSpec::kSequenceClassification:
      return MakeSequenceClassification(spec.sequence_classification());
    case TaskSpec::kTokenTagging: return MakeTokenTagging(spec.token_tagging());
    case TaskSpec::kQuestionAnswering: return MakeQuestionAnswering(spec.question_answering());
    case TaskSpec::kCausalLm: return MakeCausalLm(spec.causal_lm());
    case TaskSpec::kSequenceToSequence: return MakeSequenceToSequence(spec.sequence_to_sequence());
    case TaskSpec::TASK_NOT_SET: break;
  }
  CLOZE_CHECK(false);
}

std::unique_ptr<Task> MakeTask(HeadKind head) {
  const auto* tasks = TaskSpec::descriptor()->FindOneofByName("task");
  for (int i = 0; i < tasks->field_count(); ++i) {
    TaskSpec spec;
    spec.GetReflection()->MutableMessage(&spec, tasks->field(i));
    std::unique_ptr<Task> task = MakeTask(spec);
    if (task->head() == head) return task;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Task>> RestoreTask(
    const std::string& folder, const ModelConfig& config, int64_t longest) {
  std::unique_ptr<Task> task = MakeTask(config.head);
  if (task == nullptr) return task;
  JsonFields fields(config.task_fields, JoinPath(folder, "config.json"));
  task->Restore(config, fields, longest);
  if (!fields.status().ok()) return fields.status();
  return task;
}

}  // namespace cloze
