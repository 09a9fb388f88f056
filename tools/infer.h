// What the inference commands share: model, compute type, input, and the loop from records to
// lines.
#ifndef CLOZE_TOOLS_INFER_H_
#define CLOZE_TOOLS_INFER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/task.pb.h"
#include "tasks/inference/session.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/output.h"

namespace cloze {

struct InferOptions {
  std::string model, compute = "auto";
  std::vector<std::string> adapters;  // [NAME=]DIR
  InputOptions input;
};

// Declares --model, --adapter and --compute; with `input` also the input file and --input-format.
void AddInferOptions(CLI::App* command, InferOptions* options, bool input = true);

// The base and the adapter that --model and at most one --adapter mean together; no adapter: "".
struct BaseAndAdapter {
  std::string base, adapter;
};
absl::StatusOr<BaseAndAdapter> OneModel(const InferOptions& options);

// Of "auto", "f32" or "bf16".
RuntimeSpec::Compute ComputeNamed(const std::string& name);

// Opens the model, and sets the input's vocabulary size. kMismatch unless it has `head`; kNone: any
// will do.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options, HeadKind head);

// Texts that did not fit, for ReportCut.
struct CutTexts {
  int64_t texts = 0, tokens = 0,
          windows = 0;     // cut, their tokens that were left out, read in several windows
  int64_t max_tokens = 0;  // what the last of them had to fit in
};

// The query of a record, cut to the model's length. Errors name the input's line.
absl::StatusOr<Query> QueryOfRecord(
    const Session& session, const InputRecord& record, const InputOptions& input, CutTexts* cut);

// The queries of a record for a classifier, read as it was trained: one, or as many as it takes
// windows.
absl::StatusOr<std::vector<Query>> QueriesOfText(
    const Session& session, const InputRecord& record, const InputOptions& input, CutTexts* cut);

// Reads records in batches as they come, calls f for each batch, and flushes what f wrote before
// waiting for more.
absl::Status ForEachRecords(const InputOptions& input,
    const std::function<absl::Status(const std::vector<InputRecord>&, LineWriter*)>& f);

// `{"id": ..., ` or `{`.
std::string OpenObject(const InputRecord& record);

// Says on stderr how many texts were cut or read in windows, if any.
void ReportCut(const CutTexts& cut);

}  // namespace cloze

#endif  // CLOZE_TOOLS_INFER_H_
