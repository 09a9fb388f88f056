// `cloze evaluate`: metrics of a model on labelled data, and a row for each example.
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "tasks/data/readers.h"
#include "tasks/data_summary.h"
#include "tasks/inference/evaluate.h"
#include "tasks/retrieval.h"
#include "tasks/training/run_inputs.h"
#include "tools/evaluation.h"
#include "tools/infer.h"
#include "tools/ranks.h"
#include "tools/retrieval.h"
#include "tools/text_table.h"

namespace cloze {
namespace {

struct EvaluateCommandOptions {
  InferOptions infer;
  std::vector<std::string> data, overrides;
  std::optional<bool> viterbi;
  std::string predictions, against;
  bool json = false;
};

// The format of --predictions.
absl::StatusOr<std::string> PredictionsFormat(const std::string& path) {
  if (path == "-") return "jsonl";
  const std::string format = UnpackedName(path) == path ? FormatByExtension(path) : "";
  if (format == "csv" || format == "tsv" || format == "jsonl") return format;
  return UsageError(absl::StrCat("--predictions: ", QuotePath(path),
      ": expected a name that ends in .csv, .tsv or .jsonl, or -"));
}

// Members of an answer that get "predicted_" before their name.
bool IsPredicted(const std::string& name, bool number) {
  return name == "label" || name == "labels" || name == "tags" || (number && name == "score");
}

// Writes the row of the next example of `reader`: the columns of the input, then
//   one label   true_label, predicted_label, score, and the score of each label
//   several     true_labels, predicted_labels, and the score of each label
//   a number    true_score, predicted_score
//   tags        words, true_tags, predicted_tags
//   an answer   true_answers, answer, score and its place
absl::Status WritePrediction(const LabelledReader& reader, const Decoder& decoder,
    const TextLogits& text, AnswerWriter* writer) {
  LabelledRecord next;
  ASSIGN_OR_RETURN(const bool more, reader(&next));
  if (!more) return Error(Exit::kData, "--predictions: the data changed while they were evaluated");
  OrderedJson& row = next.answer;
  const bool number = row.contains("true_score");
  const OrderedJson answer = decoder(next.record, text);
  for (const auto& [name, value] : answer.items()) {
    if (name == "tokens" || (number && name == "label")) continue;
    row[IsPredicted(name, number) ? "predicted_" + name : name] = value;
  }
  return writer->Write(next.record, next.columns, row);
}

// Writes tables as the first file of the data is written, if that has their format.
absl::Status KeepForm(const DataSpec& data, const std::string& format, AnswerWriter* answers) {
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  const std::string& path = files[0].path;
  const std::string name = DataSpec::Format_Name(files[0].format->format);
  if (IsStream(path) || absl::AsciiStrToLower(name) != format) return absl::OkStatus();
  InputOptions first;
  first.path = path, first.data = data, first.format = format, first.records = 1;
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(first));
  std::vector<Record> row;
  RETURN_IF_ERROR(reader.Next(&row));
  ASSIGN_OR_RETURN(const std::optional<FileForm> form, reader.form());
  if (form.has_value()) answers->SetForm(*form);
  return absl::OkStatus();
}

// Evaluates the model on the data, and writes the predictions if that is wanted.
absl::StatusOr<MetricResults> EvaluateStore(const EvaluateCommandOptions& options,
    const LabelledData& data, Model& model, EvaluateOptions how) {
  const TaskSpec& spec = data.loaded.spec;
  const auto evaluate = [&] { return Evaluate(model, *data.task, data.built->store, how); };
  Ranks& ranks = ProgramRanks();
  how.ranks = &ranks;
  if (options.predictions.empty()) return evaluate();
  // Rank 0 writes the file; the others begin when it is open.
  if (!ranks.first()) {
    RETURN_IF_ERROR(ranks.Agree(absl::OkStatus()));
    return evaluate();
  }
  const auto format = PredictionsFormat(options.predictions);
  if (!format.ok()) return ranks.Agree(format.status());
  absl::StatusOr<MetricResults> results;
  bool open = false;
  const absl::Status written = WriteOutput(
      options.predictions, options.infer.force, [&](LineWriter& writer) -> absl::Status {
        AnswerWriter answers(*format, false, &writer, {},
            SeparatorOf(model.config().labels, spec.sequence_classification().label_separator()));
        const Decoder decoder = data.task->NewDecoder(model, how.decode);
        RETURN_IF_ERROR(RequireFiles(spec.validation(), "--predictions reads the data again"));
        RETURN_IF_ERROR(KeepForm(spec.validation(), *format, &answers));
        ASSIGN_OR_RETURN(const LabelledReader reader, data.task->OpenLabelled(spec.validation()));
        absl::Status rows;  // the first error
        how.on_text = [&](const TextLogits& text) {
          if (rows.ok()) rows = WritePrediction(reader, decoder, text, &answers);
        };
        open = true;
        RETURN_IF_ERROR(ranks.Agree(absl::OkStatus()));
        results = evaluate();
        RETURN_IF_ERROR(results.status());
        RETURN_IF_ERROR(rows);
        answers.WarnOfLost();
        return answers.Finish();
      });
  RETURN_IF_ERROR(open ? written : ranks.Agree(written));
  return results;
}

// Prints tables on a terminal, else JSON; on standard error if the predictions take the output.
absl::Status PrintResults(const EvaluateCommandOptions& options, const MetricResults& results) {
  if (!ProgramRanks().first()) return absl::OkStatus();
  const bool beside = options.predictions == "-";
  const int fd = beside ? 2 : 1;
  std::string text = results.ToJson() + "\n";
  const bool tables = !options.json && ::isatty(fd) == 1;
  if (tables) text = ResultTables(OrderedJson::parse(text), StyleOf(fd));
  if (!beside) return tables ? WriteTables(text) : WriteStdout(text);
  std::fputs(text.c_str(), stderr);
  return absl::OkStatus();
}

// Evaluates on a retrieval collection, which has no predictions and one way to be read.
absl::Status EvaluateCollection(const EvaluateCommandOptions& options) {
  const std::string where = absl::StrCat("--data ", QuotePath(options.data[0]), ": ");
  if (!options.predictions.empty() || !options.overrides.empty())
    return UsageError(where + "a retrieval collection: expected neither --predictions nor --set");
  if (ProgramRanks().size() > 1)
    return UsageError(where + "a retrieval collection: expected one process");
  return EvaluateRetrieval(options.infer, options.against, options.data[0], options.json);
}

absl::Status EvaluateModel(const EvaluateCommandOptions& options) {
  if (options.data.size() == 1 && IsRetrievalFolder(options.data[0]))
    return EvaluateCollection(options);
  if (!options.against.empty())
    return UsageError("--against: only for retrieval collections (for two runs: cloze report A B)");
  if (!options.predictions.empty())
    RETURN_IF_ERROR(PredictionsFormat(options.predictions).status());
  if (!options.predictions.empty() && options.predictions != "-")
    RETURN_IF_ERROR(CheckOutput(options.predictions, options.infer.force));
  const InferOptions& infer = options.infer;
  const std::vector<NamedAdapter> named = AdaptersOf(infer);
  // The folder with the task, and the base below it if it is an adapter's.
  std::string folder = infer.model;
  const bool is_adapter = IsAdapter(folder);
  if (named.size() + is_adapter > 1)
    return UsageError("--adapter: one adapter at a time can be evaluated");
  ASSIGN_OR_RETURN(const std::string base, BaseFolder(folder));
  if (!named.empty()) folder = named[0].folder;
  const bool adapted = is_adapter || !named.empty();
  ASSIGN_OR_RETURN(const auto model, LoadModel(base, adapted ? folder : ""));
  const ModelConfig& config = model->config();
  ASSIGN_OR_RETURN(
      LabelledData data, LabelledData::Open(folder, config, options.data, options.overrides));
  const TaskSpec& spec = data.loaded.spec;
  ASSIGN_OR_RETURN(const auto tokenizer,
      LoadFirstTokenizer({folder, base}, spec.model().lowercase(), config.vocab));
  if (ProgramRanks().size() > 1) {
    const absl::Status files = RequireFiles(spec.validation(), "each rank reads it");
    if (!files.ok()) return AtData(data.loaded, "validation", files);
  }
  RETURN_IF_ERROR(data.Build(config, tokenizer.get()));
  RETURN_IF_ERROR(ProgramRanks().CheckSame("the data", data.built->name()));
  for (const std::string& line : DescribeStore("data", *data.built))
    if (ProgramRanks().first()) std::fprintf(stderr, "%s\n", line.c_str());
  DType compute = InferenceType(infer.compute);
  if (WantsInt8(infer.compute).value_or(config.int8)) model->UseInt8(), compute = kInt8Activations;
  ASSIGN_OR_RETURN(const MetricResults results,
      EvaluateStore(options, data, *model,
          {.compute = compute,
              .stop = StopOnSignals(),
              .decode = {.viterbi = options.viterbi, .errors = spec.evaluation().errors()},
              .needs_finite = true}));
  return PrintResults(options, results);
}

}  // namespace

void AddEvaluate(Command& app) {
  const auto declare = [](Command& command, EvaluateCommandOptions& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("--data", &options.data,
        "Data files, with the columns or fields of the run's spec. Or a folder in the layout of "
        "BEIR (corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv): ranks its documents by "
        "the model's vectors of texts and prints ndcg_at_10, mrr_at_10, recall_at_100 and "
        "map_at_100, with BM25 as the baseline. Default: the validation data of the run, such as "
        "its held-out rows.");
    AddDataSet(command, &options.overrides);
    AddViterbi(command, &options.viterbi);
    command.Add("--predictions", &options.predictions,
        "Write a row for each example: all columns of the data, the true and the predicted label, "
        "and the scores. The name ends in .csv, .tsv or .jsonl; - writes JSON lines to standard "
        "output, and the metrics to standard error.",
        {.type = "FILE"});
    command.Add("--against", &options.against,
        "Another model folder for a retrieval collection: is ndcg_at_10 better than with it, or by "
        "chance? Prints the difference, its 95 % interval and p (paired bootstrap over queries); "
        "with BM25 always.",
        {.type = "DIR"});
    command.Add("--force", &options.infer.force, "Replace an existing file.");
    command.Add("--json", &options.json, "Print JSON on a terminal too.");
  };
  app.AddCommand<EvaluateCommandOptions>("evaluate",
      "Compute the metrics of a model on labelled data. Prints tables on a terminal (metrics, "
      "classes, confusion), and JSON into a pipe.",
      "  cloze evaluate --model runs/sst2\n"
      "  cloze evaluate --model runs/sst2 --data data/sst2/test.tsv --predictions test.csv\n"
      "  cloze evaluate --model runs/sst2 --data dev.tsv --set max_examples=1000 --json\n"
      "  cloze evaluate --model models/minilm --data data/cranfield",
      declare, EvaluateModel, /*ranks=*/true);
}

}  // namespace cloze
