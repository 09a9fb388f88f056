// From records to answers (sequences, batches, logits, joined windows, JSON), and from examples to
// metrics.
#ifndef CLOZE_TASKS_INFERENCE_PREDICTOR_H_
#define CLOZE_TASKS_INFERENCE_PREDICTOR_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/ranks.h"
#include "tasks/inference/session.h"
#include "tasks/task.h"

namespace cloze {

// Answers records with the task of a model. Not thread-safe.
class Predictor {
 public:
  struct Options {
    std::string command;  // kMismatch unless it is the command for the model's task
    std::string source;   // name of the records' file in messages
    DecodeOptions decode = {};
    bool keep_going = false;  // a wrong record gets the answer {"error": message}
  };
  // `session` must outlive the predictor.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(Session& session, Options options);

  // Calls f(record, answer) for each record in order and stops at its first error. When a record is
  // wrong, the records before it are answered first; the error names its line.
  // With keep_going, wrong records are answered and counted.
  absl::Status Answer(absl::Span<const Record> records,
      absl::FunctionRef<absl::Status(const Record& record, const OrderedJson& answer)> f);

  // The task of records that name no adapter.
  const Task& task() { return *Of(kDefaultAdapter).task; }
  // Counts of the texts so far that did not fit into the model.
  const CutCounts& cut() const { return cut_; }
  // Wrong records so far, with keep_going.
  int64_t failed() const { return failed_; }

 private:
  struct TaskOfAdapter {
    std::unique_ptr<Task> task;
    Decoder decoder;
    absl::Status status;
  };
  Predictor(Session& session, Options options) : session_(session), options_(std::move(options)) {}
  const TaskOfAdapter& Of(int adapter);
  // Appends the windows of a record to *queries.
  absl::Status Encode(const Record& record, int adapter, std::vector<Query>* queries);

  Session& session_;
  Options options_;
  std::map<int, TaskOfAdapter> tasks_;  // by the number of their adapter
  CutCounts cut_;
  int64_t failed_ = 0;
};

struct EvaluateOptions {
  int64_t batch_tokens = 8192;
  int64_t max_examples = 0;  // 0: all
  DType compute = DType::kF32;
  const std::atomic<bool>* stop = nullptr;  // set to true: ends with kInterrupted
  DecodeOptions decode = {};
  std::function<void(const TextLogits&)> on_text = {};  // Evaluation::on_text
  bool needs_finite = false;  // kInternal if the model's results are not finite
  Ranks* ranks = &OneRank();  // each computes some batches and gets the results of all
};

// Runs the model without dropout over the examples of the store, in order, and returns the metrics
// of the task. Random choices of the task, such as masks, are the same in every evaluation.
absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_PREDICTOR_H_
