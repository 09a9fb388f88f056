// A task: what a model learns and how it answers. Each task is one file that implements this
// interface. The code around it (training, evaluation, inference) depends on no particular task,
// except for encoder-decoders and for ELECTRA's generator (tasks/replaced_tokens.h).
#ifndef CLOZE_TASKS_TASK_H_
#define CLOZE_TASKS_TASK_H_

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "core/base/json.h"
#include "encoder/model.h"
#include "proto/task.pb.h"
#include "tasks/data/cache.h"
#include "tasks/metrics.h"
#include "tasks/record.h"

namespace cloze {

// The windows of one text, and the logits of their rows, window after window.
struct TextLogits {
  absl::Span<const Example> windows;
  ConstMat logits;  // [sum of the windows' rows, labels] f32
};

// Joins consecutive windows into texts: a window with `continues` belongs to the text before it.
class WindowJoiner {
 public:
  // Calls `on_text` for each text when it is complete; the argument is valid during the call.
  explicit WindowJoiner(std::function<void(const TextLogits&)> on_text)
      : on_text_(std::move(on_text)) {}
  // Adds a window; logits [rows of the window, labels] f32.
  void Add(const Example& window, ConstMat logits);
  // Completes the last text.
  void Finish();

 private:
  std::function<void(const TextLogits&)> on_text_;
  std::vector<Example> windows_;
  std::vector<float> logits_;
  int64_t rows_ = 0, labels_ = 0;
};

// Properties of the data that decide how many rows of a batch have a target.
struct DataShape {
  double mean_length = 0;  // tokens of a sequence
  double words = 1;        // words per token
};
DataShape ShapeOfData(const DataStats& stats);

// How a store will be used.
enum class DataUse { kTraining, kEvaluation };

// The user's settings for inference. Tasks ignore those that do not apply to them.
struct DecodeOptions {
  std::optional<bool> viterbi = std::nullopt;  // token_tagging; none: as the model was trained
  int top = 5;                                 // masked_lm: tokens in an answer
  bool fit = false;  // during training: fit temperature and thresholds, if the spec asks for it
  int errors = 10;   // sequence_classification: wrong texts that an evaluation shows
};

// Returns the members of an answer, in the order to print. Thread-safe. Copies the weights that it
// needs when it is made; the task must outlive it.
using Decoder = std::function<OrderedJson(const Record& record, const TextLogits& text)>;

// An example of labelled data.
struct LabelledRecord {
  Record record;                     // with its cells, if the file is a table
  std::vector<std::string> columns;  // of the table
  OrderedJson answer;                // the right one: {"true_label": "positive"}
};
// Reads the next example; false at the end.
using LabelledReader = std::function<absl::StatusOr<bool>(LabelledRecord*)>;

// Measures how good a model is on held-out examples.
class Evaluation {
 public:
  virtual ~Evaluation() = default;
  // The results of a batch, for Add.
  struct Output {
    LossSum sum = {};
    int64_t targets = 0;             // number of targets with a loss
    LossSum generator = {};          // loss of the model's generator
    std::vector<float> logits = {};  // [rows with a target, labels]; may be empty
    // In tasks with max_new_tokens: for each example, the number of tokens that the model generates
    // for its source, then these tokens.
    std::vector<int32_t> generated = {};
  };
  // Runs the head on a batch: its pass and the hidden states of the rows with a target.
  virtual Output Compute(const Pass& pass, ConstMat hidden) const = 0;
  // Adds a batch, whose output may come from another rank; its examples in order.
  virtual void Add(Output output, absl::Span<const Example> examples) = 0;
  // Adds the loss of the model's generator on the batch that was added before.
  virtual void AddGenerator(const LossSum& /*loss*/, int64_t /*targets*/) {}
  virtual MetricResults Results() = 0;
  // May be empty. Tasks with texts call it with each whole text, in order.
  std::function<void(const TextLogits&)> on_text;
};

// An evaluation of whole texts: joins windows.
class TextEvaluation : public Evaluation {
 public:
  explicit TextEvaluation(const Model& model);
  Output Compute(const Pass& pass, ConstMat hidden) const final;
  void Add(Output output, absl::Span<const Example> examples) final;
  MetricResults Results() final;

 protected:
  // Returns the loss of a batch; may overwrite `logits`. Sets the number of targets.
  virtual LossSum Loss(const Pass&, Mat /*logits*/, int64_t* /*targets*/) const { return {}; }
  virtual void AddLoss(double /*loss*/, int64_t /*targets*/, int64_t /*windows*/) {}
  virtual void AddText(const TextLogits& text) = 0;
  virtual MetricResults Count() = 0;
  const Model& model_;

 private:
  WindowJoiner joiner_;
};

// For Task: sets the weight of one label from "label=weight", and all weights from the data.
absl::Status SetLabelWeight(const std::string& task, const std::string& label_weight,
    const std::vector<std::string>& labels, std::vector<float>* weights);
absl::Status BalanceLabels(const ExampleStore& train, const std::vector<std::string>& labels,
    std::vector<float>* weights, std::vector<std::string>* notes);

// How a task reads its data.
class TaskData {
 public:
  virtual ~TaskData() = default;
  // Labels of the model: those of the spec, else learned from `train`. `folder` is the model that
  // the run starts from, whose labels are kept if they cover the data.
  virtual absl::StatusOr<std::vector<std::string>> LearnLabels(
      const DataSpec& /*train*/, const ModelConfig& /*folder*/, const std::atomic<bool>*) const {
    return std::vector<std::string>();
  }
  // Builds or opens the store of `data`. kData if the content of a file is wrong, kMismatch if the
  // tokenizer lacks a special token.
  virtual absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use,
      const Tokenizer& tokenizer, const BuildOptions& options) = 0;
  // Reads the first example of each file of `data`. Returns an error if it is wrong, for example if
  // a column is missing.
  virtual absl::Status CheckData(const DataSpec& data) const = 0;
  // Opens the texts of `data` with their right answers, in the order of the store. By default
  // kUsage: the task does not answer for each text.
  virtual absl::StatusOr<LabelledReader> OpenLabelled(const DataSpec& data) const;
  // True if the texts or words of each label can be counted.
  virtual bool counts_labels() const { return false; }
};

// Const methods are thread-safe.
class Task : public TaskData {
 public:
  // -- What the spec says.
  // Name of the task's field in TaskSpec: "token_tagging".
  const std::string& name() const { return name_; }
  HeadKind head() const { return head_; }
  // The command that answers: "predict".
  const std::string& command() const { return command_; }
  // Longest sequence, special tokens included.
  virtual int32_t max_tokens() const = 0;
  // Longest target, of tasks whose sequences are a source and a target; evaluations generate the
  // targets. 0: others.
  virtual int32_t max_new_tokens() const { return 0; }
  // True if `cloze pretrain` trains the task, with a fixed number of evaluations by default; false
  // if `cloze finetune` does, with one evaluation per epoch.
  virtual bool pretrains() const { return false; }
  // The metrics of an evaluation, for all kinds of labels.
  virtual std::vector<Metric> metrics() const = 0;

  // -- Preparing a run or opening a model.
  // Writes into *config the head and what the model folder stores of the task.
  virtual void Describe(const DataSpec& train, ModelConfig* config) const = 0;
  // Writes into *config what an evaluation with DecodeOptions::fit has fitted.
  virtual void DescribeFitted(const MetricResults& /*results*/, ModelConfig* /*config*/) const {}
  // The reverse of Describe and DescribeFitted: sets max_tokens(), at most `longest`, and the other
  // settings from `config`. `fields` reads task_fields.
  virtual void Restore(const ModelConfig& config, JsonFields& fields, int64_t longest) = 0;
  // Takes over labels and vocabulary; must be called before Build and the methods below.
  // `tokenizer` may be null for a model that only takes ids; it must outlive the task. kMismatch
  // or kSpec if the tokenizer lacks what the task needs.
  virtual absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed);
  // Learns weights of labels from the training data if the spec says so; adds lines for the user.
  virtual absl::Status WeighLabels(const ExampleStore& /*train*/, std::vector<std::string>*) {
    return absl::OkStatus();
  }

  // -- Training.
  // Returns the sequences to train in place of `example` when the share `done` of the run is done.
  virtual std::vector<Example> Sequences(Example example, double /*done*/) const {
    return {std::move(example)};
  }
  // Sets rows and labels of example `number` if the store does not hold them in their final form,
  // for example because they are drawn anew each time. `done` is the share of the run that is done
  // (1 in evaluations). A pure function.
  virtual void PrepareExample(uint64_t /*number*/, double /*done*/, Example*) const {}
  // True if the hidden state of a target is the mean of several rows (Batch::averages).
  virtual bool averages() const { return false; }
  // Returns the summed loss of `logits`, which belong to the batch's targets from `first` on; with
  // scale != 0, logits become their gradient times scale. By default the cross entropy with the
  // weights of labels.
  virtual LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const;
  // Returns the training loss of a model that has learned only how frequent each label or token is:
  // the entropy of the targets. The loss stays there until the model uses its input. NaN if the
  // task has no such loss.
  virtual absl::StatusOr<double> ChanceLoss(const ExampleStore& /*train*/) const {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // The divisor of a batch's loss, to be summed over all batches of a step. By default the number
  // of targets or the sum of their weights.
  virtual double LossWeight(const Batch& batch) const;
  // Upper bound, with some room, of the rows with a target among `rows` rows; `examples` (0:
  // unknown) limits the sequences.
  virtual int64_t TargetRows(int64_t rows, int64_t examples, const DataShape& data) const = 0;

  // -- Evaluation and inference.
  virtual std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions& options) const = 0;
  // The windows of a record, with the rows whose logits the answer needs. kData or kUsage for a
  // kind of record that the task does not take; the tokenizer's error if there is none.
  virtual absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const = 0;
  // By default none: `cloze generate` does not use it.
  virtual Decoder NewDecoder(const Model& /*model*/, const DecodeOptions& /*options*/) const {
    return nullptr;
  }
  // Returns a key that is equal for equal answers; "" if answers are numbers. By default the best
  // label of each row.
  virtual std::string AnswerKey(const TextLogits& text) const;
  // True if the answer to any text is one or more labels, or a part of the text.
  virtual bool has_discrete_answers() const { return false; }
  // True if lines of text are pairs.
  virtual bool reads_pairs() const { return false; }
  // The row of a sequence whose logits are kept as a sample of the model.
  virtual int64_t SampleRow(int64_t tokens) const { return tokens / 2; }

 protected:
  Task(std::string name, HeadKind head, std::string command)
      : name_(std::move(name)), head_(head), command_(std::move(command)) {}
  const std::vector<std::string>& labels() const { return labels_; }
  const Tokenizer* tokenizer() const { return tokenizer_; }
  // ChanceLoss of one label at each target, with the weights and the smoothing of the loss.
  absl::StatusOr<double> ChanceLossOfLabels(const ExampleStore& train) const;
  // Sets label smoothing and the weights of labels as the spec gives them, by id or by name.
  // balance_classes learns them from the data: examples / (labels x examples of the label), as
  // scikit-learn's "balanced"; 1 for a label without examples. kSpec for unknown names.
  template <typename Spec>
  absl::Status SetWeights(
      const Spec& spec, const ExampleStore& train, std::vector<std::string>* notes) {
    smoothing_ = spec.label_smoothing();
    weights_.assign(spec.class_weights().begin(), spec.class_weights().end());
    for (const std::string& weight : spec.label_weights())
      RETURN_IF_ERROR(SetLabelWeight(name_, weight, labels_, &weights_));
    if (!weights_.empty() && absl::c_all_of(weights_, [](float w) { return w == 0; }))
      return Error(Exit::kSpec, name_, ".label_weights: all are 0: expected one above 0");
    return spec.balance_classes() ? BalanceLabels(train, labels_, &weights_, notes)
                                  : absl::OkStatus();
  }

 private:
  std::string name_;
  HeadKind head_;
  std::string command_;
  std::vector<std::string> labels_;
  const Tokenizer* tokenizer_ = nullptr;
  std::vector<float> weights_;  // of labels; empty: all 1
  float smoothing_ = 0;
};

// Head::Loss with the task's loss.
LossSum HeadLoss(const Task& task, const Head& head, const Pass& pass, ConstMat hidden, float scale,
    Mat dhidden);

// The task of a spec, which must have one.
std::unique_ptr<Task> MakeTask(const TaskSpec& spec);
// The task of a head with the defaults of its spec; null for a model without a head, and for
// ELECTRA's discriminator.
std::unique_ptr<Task> MakeTask(HeadKind head);
// The task of a model folder, with sequences of at most `longest` tokens; null as above. kData,
// with the member's name, for what the task cannot use in config.json.
absl::StatusOr<std::unique_ptr<Task>> RestoreTask(
    const std::string& folder, const ModelConfig& config, int64_t longest);

// For tasks: calls `visit` with up to 100,000 examples, evenly spaced.
absl::Status ForSomeExamples(
    const ExampleStore& store, absl::FunctionRef<void(const Example& example)> visit);
// For tasks: the entropy, in nats, of outcomes with these counts.
double Entropy(absl::Span<const double> counts);

// For tasks: `share` of `rows`, with some room, at most `rows`.
int64_t ShareOfRows(int64_t rows, double share);

}  // namespace cloze

#endif  // CLOZE_TASKS_TASK_H_
