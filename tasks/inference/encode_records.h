// Encodes records up to the first error that ends the input.
#ifndef CLOZE_TASKS_INFERENCE_ENCODE_RECORDS_H_
#define CLOZE_TASKS_INFERENCE_ENCODE_RECORDS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tasks/inference/session.h"
#include "tasks/record.h"

namespace cloze {

// True for a record without content: texts of white space, control and format characters alone, no
// words, no ids. Its answer is empty, so that answers stay beside their rows.
bool IsEmpty(const Record& record);

// Reports on stderr how many records were empty, if any; `answer` says what became of them.
void ReportEmpty(int64_t count, absl::string_view answer);

// The first records of an input.
struct EncodedRecords {
  std::vector<absl::Status> failures;  // of each; OK for a right one
  std::vector<int> adapters;  // of each, from Session::AdapterNamed; kDefaultAdapter if wrong
  absl::Status end;           // the error that ended the input, if any
};

// Calls encode(i, adapter) for each record i up to one that ends the input: the first wrong one or,
// with keep_going, the first whose error is not kData. Errors begin with `source`, the name of the
// input, and the line, if the record has one.
EncodedRecords EncodeRecords(const Session& session, absl::Span<const Record> records,
    const std::string& source, bool keep_going,
    absl::FunctionRef<absl::Status(size_t i, int adapter)> encode);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_ENCODE_RECORDS_H_
