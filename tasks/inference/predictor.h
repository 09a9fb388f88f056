// From records to answers: sequences, batches, logits, joined windows, JSON.
#ifndef CLOZE_TASKS_INFERENCE_PREDICTOR_H_
#define CLOZE_TASKS_INFERENCE_PREDICTOR_H_

#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "tasks/inference/record_loop.h"
#include "tasks/inference/session.h"
#include "tasks/task.h"

namespace cloze {

// Answers records with the task of a model. Not thread-safe.
class Predictor {
 public:
  struct Options {
    std::string command = {};  // kMismatch unless it is the command for the model's task; "": any
    RecordSource source;       // keep_going: a wrong record gets the answer {"error": message}
    DecodeOptions decode = {};
    bool empty = false;  // an empty record (IsEmpty) gets EmptyAnswer
  };
  // `session` must outlive the predictor.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(Session& session, Options options);

  // Calls f(record, answer) for each record in order and stops at its first error. When a record is
  // wrong, the records before it are answered first; the error names its line.
  // With keep_going, wrong records are answered and counted.
  absl::Status Answer(absl::Span<const Record> records,
      absl::FunctionRef<absl::Status(const Record& record, const OrderedJson& answer)> f);

  // Answers the records in order by f(i, answer). The answer of a wrong record is its error if
  // Answer would go on after it.
  absl::Status AnswerOr(absl::Span<const Record> records,
      absl::FunctionRef<absl::Status(size_t i, absl::StatusOr<OrderedJson> answer)> f);

  // Returns an answer without content: "label" is "", "score" is null, lists are empty; {} if the
  // model cannot answer a text.
  const OrderedJson& EmptyAnswer() { return EmptyAnswer(kDefaultAdapter); }

  // Calls f(i, probabilities) for each record in order, with Answers::Probabilities. Empty records
  // are encoded as others. Errors of ForEachRecord.
  absl::Status Probabilities(absl::Span<const Record> records, const RecordSource& source,
      absl::FunctionRef<void(size_t i, absl::StatusOr<std::vector<float>> probabilities)> f);

  Session& session() { return session_; }
  // The task of records that name no adapter.
  const Task& task() { return *Of(kDefaultAdapter).task; }
  // Counts of the texts so far that did not fit into the model.
  const CutCounts& cut() const { return cut_; }
  // Wrong records so far, with keep_going.
  int64_t failed() const { return failed_; }
  // Empty records so far.
  int64_t empty() const { return empty_; }

 private:
  struct TaskOfAdapter {
    std::unique_ptr<Task> task;
    Decoder decoder;
    absl::Status status;
    OrderedJson empty;  // once it is known
  };
  Predictor(Session& session, Options options) : session_(session), options_(std::move(options)) {}
  TaskOfAdapter& Of(int adapter);
  const OrderedJson& EmptyAnswer(int adapter);
  // True if EmptyAnswer is the answer: a tagger answers a text without words itself.
  bool HasEmptyAnswer(const Record& record, int adapter);
  // Returns the answer to a record without windows.
  OrderedJson AnswerWithoutModel(const Record& record, int adapter);
  // Appends the windows of a record to *queries. With `empty`, an empty record has none.
  absl::Status Encode(const Record& record, int adapter, bool empty, std::vector<Query>* queries);
  // Passes the windows of records through the model; calls on_text(i, of, text) for each record in
  // order, on_other(i, adapter) as ForEachRecord its answer_other.
  absl::Status ForEachText(absl::Span<const Record> records, const RecordSource& source, bool empty,
      absl::FunctionRef<absl::Status(size_t i, const TaskOfAdapter& of, const TextLogits& text)>
          on_text,
      absl::FunctionRef<absl::Status(size_t i, const absl::StatusOr<int>& adapter)> on_other);

  Session& session_;
  Options options_;
  std::map<int, TaskOfAdapter> tasks_;  // by the number of their adapter
  CutCounts cut_;
  int64_t failed_ = 0, empty_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_PREDICTOR_H_
