#include "tools/infer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "core/base/text.h"
#include "proto/spec.h"
#include "tasks/inference/explainer.h"
#include "tasks/run/run_folder.h"
#include "tools/explain_page.h"
#include "tools/texts.h"

namespace cloze {
namespace {

constexpr size_t kMaxAdapters = 32;  // for which records are read at once
constexpr int64_t kExplained = 64;   // records that are read at once with --explain
constexpr int64_t kMaxSections = 1000;

// Answers the records and, unless `explainer` is null, explains the answers.
absl::Status AnswerRecords(Predictor& predictor, Explainer* explainer,
    absl::Span<const Record> records, WriteAnswer write) {
  if (explainer == nullptr) return predictor.Answer(records, write);
  std::vector<OrderedJson> answers;
  absl::Status status = predictor.Answer(records, [&](const Record&, const OrderedJson& answer) {
    answers.push_back(answer);
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(explainer->Explain(records, absl::MakeSpan(answers)));
  for (size_t i = 0; i < answers.size(); ++i) RETURN_IF_ERROR(write(records[i], answers[i]));
  return status;
}

// Writes all answers as a page.
absl::Status WritePage(Predictor& predictor, Explainer& explainer, const InferOptions& options,
    InputReader& reader, LineWriter& writer) {
  std::string sections;
  int64_t texts = 0;
  RETURN_IF_ERROR(ForEachBatch(reader, writer, [&](const std::vector<Record>& records) {
    return AnswerRecords(
        predictor, &explainer, records, [&](const Record& record, const OrderedJson& answer) {
          if (texts++ < kMaxSections) sections += ExplainSection(record, answer);
          return absl::OkStatus();
        });
  }));
  if (texts > kMaxSections)
    std::fprintf(stderr, "cloze: the page shows the first %lld of %s\n", (long long)kMaxSections,
        Counted(texts, "text").c_str());
  return writer.WriteText(ExplainPage(options.model, sections));
}

// Writes all answers as lines. Returns AnswerWriter::unplaced.
absl::StatusOr<int64_t> WriteLines(Predictor& predictor, Explainer* explainer,
    const InferOptions& options, InputReader& reader, LineWriter& writer) {
  const bool table = options.format == "csv" || options.format == "tsv";
  OrderedJson empty = table ? predictor.EmptyAnswer() : OrderedJson();
  if (explainer != nullptr && table) explainer->AddEmpty(&empty);
  return WriteAnswers(options, std::move(empty), reader, writer,
      [&](const std::vector<Record>& records, WriteAnswer write) {
        return AnswerRecords(predictor, explainer, records, write);
      });
}

}  // namespace

absl::StatusOr<int64_t> WriteAnswers(const InferOptions& options, OrderedJson empty,
    InputReader& reader, LineWriter& writer,
    absl::FunctionRef<absl::Status(const std::vector<Record>& records, WriteAnswer write)> answer) {
  AnswerWriter answers(options.format, options.on_error == "line", &writer, std::move(empty),
      options.label_separator);
  const bool terminal = (options.out.empty() || options.out == "-") && ::isatty(1) == 1;
  const auto keep_form = [&]() -> absl::Status {
    if (terminal || options.format != reader.format()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::optional<FileForm> form, reader.form());
    if (form) answers.SetForm(*form);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachBatch(reader, writer, [&](const std::vector<Record>& records) {
    RETURN_IF_ERROR(keep_form());
    return answer(records, [&](const Record& record, const OrderedJson& json) {
      absl::Status status = answers.Write(record, reader.columns(), json);
      if (ExitOf(status) != Exit::kData) return status;
      return Annotate(status, options.input.name(), ":", record.line);
    });
  }));
  RETURN_IF_ERROR(keep_form());
  answers.WarnOfLost();
  RETURN_IF_ERROR(answers.Finish(reader.columns()));
  return answers.unplaced();
}

absl::Status InvalidLines(const std::string& source, int64_t count, absl::string_view hint) {
  if (count == 0) return absl::OkStatus();
  return Error(Exit::kData, source, ": ", Counted(count, "invalid line"), hint);
}

void AddInferOptions(Command& command, InferOptions* options, bool input) {
  command.Add("--model", &options->model,
      "Model folder: a run, a Hugging Face folder, or an adapter folder (LoRA).",
      {.required = true});
  command.Add("--adapter", &options->adapters,
      "Adapter folder to apply to --model. With NAME=FOLDER, repeatable: each JSON line chooses "
      "one by its member \"adapter\" (not in tag, attention and evaluate).",
      {.type = "[NAME=]FOLDER", .repeatable = true});
  command.Add("--compute", &options->compute,
      "Type of activations. auto: f32, and int8 for a folder of `cloze quantize`. bf16: two to "
      "three times as fast on CPUs with AMX, and on AMD's with AVX512_BF16; scores change by up "
      "to 0.02. int8: multiplies the linear layers of the blocks in int8 and, on CPUs with VNNI "
      "but without AMX, attention over texts of 64 tokens or more; the rest is in bf16 or f32.",
      {.choices = {"auto", "f32", "bf16", "int8"}});
  if (input) AddInputOptions(command, &options->input);
}

void AddInputOptions(Command& command, InputOptions* options) {
  command.Add(
      "input", &options->path, "File to read; - is standard input. Blank lines are empty texts.");
  options->blank_lines = true;
  AddInputFormat(command, options);
  command.Add("--pairs", &options->pairs, "Each line of text holds two texts, separated by a tab.");
  AddFieldOptions(command, options);
}

absl::Status CheckPairs(const InputOptions& options) {
  if (!options.pairs || !options.text_pair_field.empty() || !options.data.text_pair_field().empty())
    return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string format, InputFormat(options));
  if (format == "text" || format == "ids") return absl::OkStatus();
  return UsageError(
      "--pairs: only for lines of text: expected --text-pair-field, the field of the second text");
}

void AddInputFormat(Command& command, InputOptions* options) {
  command.Add("--input-format", &options->format,
      "text: one text per line. csv, tsv: a table with a header. jsonl: one JSON object per line, "
      "with \"text\" and optionally \"text_pair\" and \"id\". fasttext: labels that begin with "
      "__label__, and a text. ids: token ids separated by spaces. Default: by the extension (.csv "
      ".tsv .jsonl .json .ft); else as --format, if there is one; else text.",
      {.choices = {"text", "csv", "tsv", "jsonl", "fasttext", "ids"}});
  AddFileOptions(command, &options->reading, kReadAsTrained);
}

void AddFieldOptions(Command& command, InputOptions* options) {
  command.Add("--text-field", &options->text_field,
      "Column or JSON member of the text. Default: as in the spec of the model's run, else text.",
      {.type = "NAME"});
  command.Add("--text-pair-field", &options->text_pair_field,
      "Column or JSON member of the second text. Default: as in the spec of the model's run.",
      {.type = "NAME"});
  command.Add("--id-field", &options->id_field,
      "Column or JSON member that is copied to each answer as \"id\". Default: id, if present.",
      {.type = "NAME"});
}

void AddOnError(Command& command, InferOptions* options, absl::string_view line) {
  command.Add("--on-error", &options->on_error,
      absl::StrCat("What to do with an invalid line. stop: end the command. line: ", line,
          "; the other lines are processed, and the exit code is 65 at the end."),
      {.choices = {"stop", "line"}});
}

void AddOutputOptions(Command& command, InferOptions* options, std::vector<std::string> choices) {
  std::string help =
      "csv, tsv, jsonl: rows of the input, with all columns, and the answer in new columns; "
      "a new column gets the prefix \"predicted_\" if the input has one of its name. Default: by "
      "the name of --out (.csv, .tsv); else only the answers, as JSON lines.";
  if (std::find(choices.begin(), choices.end(), "text") != choices.end())
    help += " text, ids: the format of the input, as in older versions (prefer --input-format).";
  command.Add("--format", &options->format, help, {.choices = std::move(choices)});
  command.Add("--out", &options->out,
      "File for the answers; it appears when all are written. Default: standard output.",
      {.type = "FILE"});
  command.Add("--force", &options->force, "Replace an existing file.");
}

void AddExplain(Command& command, InferOptions* options) {
  command.Add("--explain", &options->explain,
      absl::StrCat("Add the words that carried each answer: \"effect\" is by how much its "
                   "probability falls without the word. Takes a pass of the model for each word of "
                   "a text (at most ",
          Explainer::kMaxParts,
          "; of longer texts, runs of words "
          "are left out). --format html or --out FILE.html writes a page with highlights "
          "(of the first ",
          kMaxSections, " texts)."));
}

absl::Status SetHtml(InferOptions* options) {
  options->html = options->format == "html" ||
                  (options->format.empty() && (absl::EndsWith(options->out, ".html") ||
                                                  absl::EndsWith(options->out, ".htm")));
  if (options->format == "html") options->format.clear();
  if (!options->html || options->explain) return absl::OkStatus();
  return UsageError("--format html: shows what carried the answers: expected --explain");
}

void AddViterbi(Command& command, std::optional<bool>* viterbi) {
  command.AddSwitch("viterbi", viterbi,
      "Labels of a span scheme (BIO, IOBES): decode the best sequence that the scheme allows. "
      "Default: as in training.",
      "Use the best label of each word.");
}

std::vector<NamedAdapter> AdaptersOf(const InferOptions& options) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& text : options.adapters) adapters.push_back(NamedAdapter::Parse(text));
  return adapters;
}

absl::Status CheckAnswersName(const InferOptions& options) {
  if (!options.format.empty() || options.html) return absl::OkStatus();
  return CheckExtension(options.out, {"csv", "tsv", "jsonl", "json"}, ", or --format");
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options) {
  ASSIGN_OR_RETURN(auto session, Session::Open(options->model, InferenceType(options->compute),
                                     AdaptersOf(*options), WantsInt8(options->compute)));
  InputOptions& input = options->input;
  input.vocab_size = session->config().vocab;
  input.skip_bad = options->on_error == "line";
  if (input.format.empty() && FormatByExtension(input.path).empty()) input.format = options->format;
  if (UnpackedName(options->out) != options->out)
    return UsageError(absl::StrCat("--out ", Quote(options->out), ": expected a name without .gz, ",
        ".xz or .zst (answers are not compressed; --out - | gzip does it)"));
  const std::string out = FormatByExtension(options->out);
  if (options->format.empty() && (out == "csv" || out == "tsv")) options->format = out;
  input.keep = !options->format.empty();
  RETURN_IF_ERROR(SetInputData(
      session->folder(kDefaultAdapter), session->config(), &input, &options->label_separator));
  RETURN_IF_ERROR(CheckPairs(input));
  options->input.records *=
      static_cast<int64_t>(std::clamp<size_t>(options->adapters.size(), 1, kMaxAdapters));
  if (options->explain) input.records = std::min(input.records, kExplained);
  return session;
}

absl::StatusOr<DataSpec> TrainingData(
    const std::string& folder, const ModelConfig& config, std::string* label_separator) {
  if (const std::string path = SpecOfRun(folder); !path.empty()) {
    ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(path, {}));
    if (label_separator != nullptr)
      *label_separator =
          SeparatorOf(config.labels, loaded.spec.sequence_classification().label_separator());
    return AllExamples(loaded.spec.train());
  }
  DataSpec data;
  const Json &text = JsonMember(config.task_fields, "text_field"),
             &pair = JsonMember(config.task_fields, "text_pair_field");
  if (text.is_string()) data.set_text_field(text.get<std::string>());
  if (pair.is_string()) data.set_text_pair_field(pair.get<std::string>());
  return data;
}

absl::Status SetInputData(const std::string& folder, const ModelConfig& config, InputOptions* input,
    std::string* label_separator) {
  ASSIGN_OR_RETURN(input->data, TrainingData(folder, config, label_separator));
  if (config.head == HeadKind::kNone) input->data.clear_text_pair_field();  // each has a vector
  return OverrideFileOptions(input->reading, &input->data);
}

absl::Status ForEachBatch(InputReader& reader, LineWriter& writer,
    const std::function<absl::Status(const std::vector<Record>&)>& f) {
  std::vector<Record> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(&records));
    if (records.empty()) return writer.Flush();
    const absl::Status status = f(records);
    RETURN_IF_ERROR(writer.Flush());
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(CheckSignals());
  }
}

RecordSource SourceOf(const InferOptions& options) {
  return {options.input.name(), options.on_error == "line"};
}

absl::StatusOr<std::unique_ptr<Predictor>> NewPredictor(Session& session,
    const InferOptions& options, const std::string& command, const DecodeOptions& decode) {
  return Predictor::Create(
      session, {command, SourceOf(options), decode, options.input.blank_lines});
}

absl::Status AnswerInput(Predictor& predictor, const InferOptions& options) {
  RETURN_IF_ERROR(CheckAnswersName(options));
  std::optional<Explainer> explainer;
  if (options.explain) {
    ASSIGN_OR_RETURN(explainer, Explainer::Create(&predictor));
  }
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.input));
  int64_t unplaced = 0;
  Explainer* const explains = explainer.has_value() ? &*explainer : nullptr;
  RETURN_IF_ERROR(WriteOutput(options.out, options.force, [&](LineWriter& writer) -> absl::Status {
    if (options.html) return WritePage(predictor, *explainer, options, reader, writer);
    ASSIGN_OR_RETURN(unplaced, WriteLines(predictor, explains, options, reader, writer));
    return absl::OkStatus();
  }));
  if (explainer.has_value() && explainer->shortened() > 0)
    std::fprintf(stderr,
        "cloze: longer than %lld words: %s, of which runs of words were left out\n",
        (long long)Explainer::kMaxParts, Counted(explainer->shortened(), "text").c_str());
  ReportCut(predictor.cut());
  ReportEmpty(predictor.empty(), "whose answer is empty");
  return InvalidLines(options.input.name(), predictor.failed() + unplaced, kSeeErrors);
}

void ReportEmpty(int64_t count, const char* answer) {
  if (count > 0)
    std::fprintf(stderr, "cloze: empty: %s, %s\n", Counted(count, "text").c_str(), answer);
}

void ReportCut(const CutCounts& cut) {
  if (cut.texts > 0) std::fprintf(stderr, "cloze: %s\n", cut.DescribeCut().c_str());
  if (cut.windows > 0)
    std::fprintf(stderr,
        "cloze: longer than the model's %lld tokens: %s, read in several windows\n",
        (long long)cut.max_tokens, Counted(cut.windows, "text").c_str());
  if (cut.questions > 0)
    std::fprintf(stderr, "cloze: longer than longest_question: %s, cut off\n",
        Counted(cut.questions, "question").c_str());
  if (cut.words > 0)
    std::fprintf(stderr, "cloze: longer than the model reads at once: %s, cut off\n",
        Counted(cut.words, "word").c_str());
}

}  // namespace cloze
