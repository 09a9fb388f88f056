// The loop over the records of an input, which keeps their order and sorts out the wrong ones.
#ifndef CLOZE_TASKS_INFERENCE_RECORD_LOOP_H_
#define CLOZE_TASKS_INFERENCE_RECORD_LOOP_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tasks/inference/session.h"
#include "tasks/record.h"

namespace cloze {

// True for a record without content: texts of white space, control and format characters alone, no
// words, no ids. Its answer is empty, so that answers stay beside their rows.
bool IsEmpty(const Record& record);

// An input, and what follows a wrong record in it.
struct RecordSource {
  std::string name;         // in messages
  bool keep_going = false;  // answer wrong records; else the first one ends the input
  bool keep_all = false;    // also those with another error than kData
};

// Answers the record of a query: calls answer(i) unless an earlier answer had an error.
using Emit =
    absl::FunctionRef<void(size_t query, absl::FunctionRef<absl::Status(size_t i)> answer)>;

// Answers records one after the other:
//   encode(i, adapter, &queries) appends the sequences of record i; `adapter` is from
//     Session::AdapterNamed.
//   run(queries, emit) passes them through the model and calls emit for them in order.
//   answer_other(i, adapter) answers a record without queries in its turn, among those that `run`
//     emits. For a wrong record `adapter` is its error.
// The first wrong record ends the input, unless the source keeps it. Returns its error,
// "source:line: ...", after those before it are answered; or the first error of `run` or of an
// answer.
absl::Status ForEachRecord(const Session& session, absl::Span<const Record> records,
    const RecordSource& source,
    absl::FunctionRef<absl::Status(size_t i, int adapter, std::vector<Query>* queries)> encode,
    absl::FunctionRef<absl::Status(absl::Span<const Query> queries, Emit emit)> run,
    absl::FunctionRef<absl::Status(size_t i, const absl::StatusOr<int>& adapter)> answer_other);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_RECORD_LOOP_H_
