// Shared parts of the inference commands: options, input, and the loop from records to lines.
#ifndef CLOZE_TOOLS_INFER_H_
#define CLOZE_TOOLS_INFER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "tasks/compute_type.h"
#include "tasks/inference/predictor.h"
#include "tasks/inference/record_vectors.h"
#include "tools/answers.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/process.h"

namespace cloze {

struct InferOptions {
  std::string model, compute = "auto";
  std::vector<std::string> adapters;  // [NAME=]DIR
  InputOptions input;
  std::string on_error = "stop";
  std::string format, out;            // of the answers
  std::string label_separator = ",";  // between the labels of a cell
  bool force = false;                 // replace `out`
  bool explain = false;               // add the words that carried each answer
  bool html = false;                  // as a page in place of `format`
};

// Adds --model, --adapter and --compute; with `input` also the options of AddInputOptions.
void AddInferOptions(Command& command, InferOptions* options, bool input = true);
// Adds the input file, `--input-format`, `--pairs` and the names of columns.
void AddInputOptions(Command& command, InputOptions* options);
// Returns kUsage if --pairs was given for a format where it has no effect.
absl::Status CheckPairs(const InputOptions& options);
// Adds `--input-format` and --set.
void AddInputFormat(Command& command, InputOptions* options);
// Adds --text-field, --text-pair-field and --id-field.
void AddFieldOptions(Command& command, InputOptions* options);
// Adds --on-error; `line` completes "line: " in the help: what becomes of a wrong line.
void AddOnError(Command& command, InferOptions* options,
    absl::string_view line = "its answer is {\"id\": ..., \"line\": ..., \"error\": ...}");
// Adds --format, with `choices`, --out and --force.
void AddOutputOptions(Command& command, InferOptions* options, std::vector<std::string> choices);
// Adds --explain.
void AddExplain(Command& command, InferOptions* options);
// Moves the format html, and a name of --out that ends in .html, into options->html. kUsage without
// --explain.
absl::Status SetHtml(InferOptions* options);
// Adds --viterbi and --no-viterbi.
void AddViterbi(Command& command, std::optional<bool>* viterbi);

inline constexpr char kSeeErrors[] = " (see \"error\" in the answers)";
// Returns kData that names the number of invalid lines of `source`; OK for 0. `hint` follows.
absl::Status InvalidLines(const std::string& source, int64_t count, absl::string_view hint = "");

// The adapters that --adapter names.
std::vector<NamedAdapter> AdaptersOf(const InferOptions& options);

// Returns kUsage if the name of --out does not fit the answers: csv, tsv, JSON lines; any name if
// --format says the format.
absl::Status CheckAnswersName(const InferOptions& options);

// Opens the model and completes the input options: the vocabulary size, and the fields of tables as
// in the spec of the model's run. If neither an option nor the file name gives the input format, it
// becomes the format of the output.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options);

// Returns how the data of the run in `folder`, or of the run whose checkpoint it is, were read. If
// it is neither, returns only the fields that `config` names.
absl::StatusOr<DataSpec> TrainingData(
    const std::string& folder, const ModelConfig& config, std::string* label_separator = nullptr);
// Sets input->data from TrainingData and input->reading.
absl::Status SetInputData(const std::string& folder, const ModelConfig& config, InputOptions* input,
    std::string* label_separator = nullptr);

// Reads records in batches as they come, calls f for each batch, and flushes `writer` before
// waiting for more.
absl::Status ForEachBatch(InputReader& reader, LineWriter& writer,
    const std::function<absl::Status(const std::vector<Record>&)>& f);

// Returns the name of the input and what --on-error says.
RecordSource SourceOf(const InferOptions& options);
// Returns a predictor for `command`. Errors of Predictor::Create.
absl::StatusOr<std::unique_ptr<Predictor>> NewPredictor(Session& session,
    const InferOptions& options, const std::string& command, const DecodeOptions& decode = {});

using WriteAnswer = absl::FunctionRef<absl::Status(const Record& record, const OrderedJson& json)>;
// Writes the answers to all records of `reader`: `answer` calls write(record, json) for each record
// of a batch, in order. A table that is answered by a table keeps its form, but not on a terminal.
// Returns AnswerWriter::unplaced; `empty` is its empty answer.
absl::StatusOr<int64_t> WriteAnswers(const InferOptions& options, OrderedJson empty,
    InputReader& reader, LineWriter& writer,
    absl::FunctionRef<absl::Status(const std::vector<Record>& records, WriteAnswer write)> answer);
// Answers all of the input in the format of the options, and reports cut texts and wrong lines.
absl::Status AnswerInput(Predictor& predictor, const InferOptions& options);
// Reports on stderr how many texts were cut or read in windows, if any.
void ReportCut(const CutCounts& cut);
// Reports on stderr how many records were empty, if any; `answer` says what became of them.
void ReportEmpty(int64_t count, const char* answer);

}  // namespace cloze

#endif  // CLOZE_TOOLS_INFER_H_
