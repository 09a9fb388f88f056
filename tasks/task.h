// A task: what a model learns and how it answers. Each task is one file that implements these
// interfaces. The code around it (training, evaluation, inference) depends on no particular task.
#ifndef CLOZE_TASKS_TASK_H_
#define CLOZE_TASKS_TASK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "encoder/model.h"
#include "proto/spec.h"
#include "tasks/answers.h"
#include "tasks/data/cache.h"
#include "tasks/evaluation.h"
#include "tasks/metrics.h"
#include "tasks/objective.h"
#include "tasks/record.h"

namespace cloze {

class LabelledTask;

// The use of a store.
enum class DataUse { kTraining, kEvaluation };

// An example of labelled data.
struct LabelledRecord {
  Record record;                     // with its cells, if the file is a table
  std::vector<std::string> columns;  // of the table
  std::string where;                 // "data.csv:17"; "" if the task does not tell
  OrderedJson answer;                // the right one: {"true_label": "positive"}
};
// Reads the next example; false at the end.
using LabelledReader = std::function<absl::StatusOr<bool>(LabelledRecord*)>;

// The reading of a task's data.
class TaskData {
 public:
  virtual ~TaskData() = default;
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
};

// Const methods are thread-safe.
class Task : public TaskData, public Objective, public Answers {
 public:
  // -- What the spec says.
  // Name of the task's field in TaskSpec: "token_tagging".
  const std::string& name() const { return name_; }
  HeadKind head() const { return head_; }
  // The command that answers: "predict".
  const std::string& command() const { return command_; }
  // Longest sequence, special tokens included.
  virtual int32_t max_tokens() const = 0;
  // Most tokens of an example, in sequences that are joined.
  virtual int64_t max_example_tokens() const { return max_tokens(); }
  // True if `cloze pretrain` trains the task, with a fixed number of evaluations by default; false
  // if `cloze finetune` does, with one evaluation per epoch.
  virtual bool pretrains() const { return false; }
  // The metrics of an evaluation, for all kinds of labels.
  virtual std::vector<Metric> metrics() const = 0;
  // This, if the task learns labels of the data; else null.
  virtual LabelledTask* labelled() { return nullptr; }

  // -- Preparing a run or opening a model.
  // kSpec, with its place in `loaded`, unless the task can train a model like `config`. By default
  // an encoder that has max_tokens() positions.
  virtual absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const;
  // Writes into *config the head, what the model folder stores of the task, and the auxiliary
  // models of its training. By default the head.
  virtual void Describe(const DataSpec& /*train*/, ModelConfig* config) const {
    config->head = head_;
  }
  // Writes into *config what an evaluation with DecodeOptions::fit has fitted.
  virtual void DescribeFitted(const MetricResults& /*results*/, ModelConfig* /*config*/) const {}
  // The reverse of Describe and DescribeFitted: sets max_tokens(), at most `longest`, and the other
  // settings from `config`. `fields` reads task_fields.
  virtual void Restore(const ModelConfig& config, JsonFields& fields, int64_t longest) = 0;
  // Writes into the folder of a run the files besides those of a model, if the task has any; they
  // do not depend on the weights.
  virtual absl::Status WriteFiles(
      const ModelConfig& /*config*/, const std::string& /*folder*/) const {
    return absl::OkStatus();
  }
  // The reverse of WriteFiles, after Restore. kData or kMismatch for files that the task cannot
  // use.
  virtual absl::Status ReadFiles(const std::string& /*folder*/) { return absl::OkStatus(); }
  // Takes over labels and vocabulary; must be called before Build, training and answers.
  // `tokenizer` may be null for a model that only takes ids; it must outlive the task. kMismatch
  // or kSpec if the tokenizer lacks what the task needs.
  virtual absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed);

  virtual std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions& options) const = 0;

 protected:
  Task(std::string name, HeadKind head, std::string command)
      : name_(std::move(name)), head_(head), command_(std::move(command)) {}
  const Tokenizer* tokenizer() const { return tokenizer_; }
  // kSpec if `tokens`, which `field` of the task sets, exceed the positions of `config`.
  absl::Status CheckLength(const LoadedSpec& loaded, absl::string_view field, int32_t tokens,
      const ModelConfig& config) const;

 private:
  std::string name_;
  HeadKind head_;
  std::string command_;
  const Tokenizer* tokenizer_ = nullptr;
};

// The task of a spec, which must have one.
std::unique_ptr<Task> MakeTask(const TaskSpec& spec);
// The task of a head with the defaults of its spec; null for a model without a head, and for a head
// that no task answers with.
std::unique_ptr<Task> MakeTask(HeadKind head);
// The task of a model folder, with sequences of at most `longest` tokens; null as above. kData,
// with the member's name, for what the task cannot use in config.json.
absl::StatusOr<std::unique_ptr<Task>> RestoreTask(
    const std::string& folder, const ModelConfig& config, int64_t longest);

}  // namespace cloze

#endif  // CLOZE_TASKS_TASK_H_
