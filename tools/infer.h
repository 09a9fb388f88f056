// Shared parts of the inference commands: options, input, and the loop from records to lines.
#ifndef CLOZE_TOOLS_INFER_H_
#define CLOZE_TOOLS_INFER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/inference/predictor.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/process.h"

namespace cloze {

struct InferOptions {
  std::string model, compute = "auto";
  std::vector<std::string> adapters;  // [NAME=]DIR
  InputOptions input;
};

// Adds --model, --adapter and --compute; with `input` also the options of AddInputOptions.
void AddInferOptions(Command& command, InferOptions* options, bool input = true);
// Adds the input file, `--input-format` and `--pairs`.
void AddInputOptions(Command& command, InputOptions* options);
// Adds `--input-format` alone.
void AddInputFormat(Command& command, InputOptions* options);
// Adds --viterbi and --no-viterbi.
void AddViterbi(Command& command, std::optional<bool>* viterbi);

// The adapters that --adapter names.
std::vector<NamedAdapter> AdaptersOf(const InferOptions& options);

// Returns the type of activations that --compute names.
absl::StatusOr<DType> ComputeOf(const InferOptions& options);

// Opens the model and sets the input's vocabulary size.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options);

// Returns the name of the input for messages.
std::string SourceOf(const InputOptions& input);

// Reads records in batches as they come, calls f for each batch, and flushes what f wrote before
// waiting for more.
absl::Status ForEachRecords(const InputOptions& input,
    const std::function<absl::Status(const std::vector<Record>&, LineWriter*)>& f);

// Writes the answers of `records`, one line each.
absl::Status WriteAnswers(
    Predictor& predictor, absl::Span<const Record> records, LineWriter* writer);

// Answers all of the input, a line each, and reports what did not fit.
absl::Status AnswerInput(Predictor& predictor, const InputOptions& input);

// Reports on stderr how many texts were cut or read in windows, if any.
void ReportCut(const CutCounts& cut);

}  // namespace cloze

#endif  // CLOZE_TOOLS_INFER_H_
