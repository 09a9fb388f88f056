#include "tools/infer.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "core/base/text.h"
#include "tasks/build.h"

namespace cloze {
namespace {

constexpr size_t kMostAdapters = 32;  // for which records are read at once

}  // namespace

void AddInferOptions(Command& command, InferOptions* options, bool input) {
  command.Add("--model", &options->model,
      "Model folder: a run, a Hugging Face folder, or an adapter folder (LoRA).",
      {.required = true});
  command.Add("--adapter", &options->adapters,
      "Adapter folder to use: with a name for the JSON lines with \"adapter\": NAME, without one "
      "for all others. Repeatable.",
      {.type = "[NAME=]FOLDER", .repeatable = true});
  command.Add("--compute", &options->compute,
      "Type of activations. auto: f32. bf16: two to three times as fast on CPUs with AVX512_BF16; "
      "scores change by up to 0.02.",
      {.choices = {"auto", "f32", "bf16"}});
  if (input) AddInputOptions(command, &options->input);
}

void AddInputOptions(Command& command, InputOptions* options) {
  command.Add(
      "input", &options->path, "File to read; - is standard input. Blank lines are skipped.");
  AddInputFormat(command, options);
  command.Add("--pairs", &options->pairs, "Each line of text holds two texts, separated by a tab.");
}

void AddInputFormat(Command& command, InputOptions* options) {
  command.Add("--input-format", &options->format,
      "text: one text per line. jsonl: one JSON object per line, with \"text\" and optionally "
      "\"text_pair\" and \"id\". ids: token ids separated by blanks.",
      {.choices = {"text", "jsonl", "ids"}});
}

void AddViterbi(Command& command, std::optional<bool>* viterbi) {
  command.AddSwitch("viterbi", viterbi,
      "Labels of a span scheme (BIO, IOBES): decode the best sequence that the scheme allows. "
      "Default: as in training.",
      "Use the best label of each word.");
}

std::vector<NamedAdapter> AdaptersOf(const InferOptions& options) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& text : options.adapters) {
    const size_t equals = text.find('=');
    const bool named = equals != std::string::npos;
    adapters.push_back(
        {named ? text.substr(0, equals) : "", named ? text.substr(equals + 1) : text});
  }
  return adapters;
}

absl::StatusOr<DType> ComputeOf(const InferOptions& options) {
  RuntimeSpec::Compute compute = RuntimeSpec::AUTO;
  RuntimeSpec::Compute_Parse(absl::AsciiStrToUpper(options.compute), &compute);
  return ComputeOf(compute, Use::kInference);
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options) {
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(*options));
  ASSIGN_OR_RETURN(auto session, Session::Open(options->model, compute, AdaptersOf(*options)));
  options->input.vocab_size = session->config().vocab;
  options->input.records *=
      static_cast<int64_t>(std::clamp<size_t>(options->adapters.size(), 1, kMostAdapters));
  return session;
}

std::string SourceOf(const InputOptions& input) {
  return input.path == "-" ? "standard input" : QuotePath(input.path);
}

absl::Status ForEachRecords(const InputOptions& input,
    const std::function<absl::Status(const std::vector<Record>&, LineWriter*)>& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  LineWriter writer;
  std::vector<Record> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(&records));
    if (records.empty()) return writer.Flush();
    const absl::Status status = f(records, &writer);
    RETURN_IF_ERROR(writer.Flush());
    RETURN_IF_ERROR(status);
  }
}

absl::Status WriteAnswers(
    Predictor& predictor, absl::Span<const Record> records, LineWriter* writer) {
  return predictor.Answer(records, [&](const Record& record, const OrderedJson& answer) {
    const std::string line = ToJsonLine(answer);
    if (record.id.empty()) return writer->Write(line);
    return writer->Write(
        absl::StrCat("{\"id\": ", record.id, ", ", absl::string_view(line).substr(1)));
  });
}

absl::Status AnswerInput(Predictor& predictor, const InputOptions& input) {
  RETURN_IF_ERROR(
      ForEachRecords(input, [&](const std::vector<Record>& records, LineWriter* writer) {
        return WriteAnswers(predictor, records, writer);
      }));
  ReportCut(predictor.cut());
  return absl::OkStatus();
}

void ReportCut(const CutCounts& cut) {
  const auto say = [&](int64_t texts, const std::string& what) {
    if (texts > 0)
      std::fprintf(stderr, "cloze: longer than the model's %lld tokens: %s, %s\n",
          (long long)cut.max_tokens, Counted(texts, "text").c_str(), what.c_str());
  };
  say(cut.texts, absl::StrCat(Counted(cut.tokens, "token"), " cut off"));
  say(cut.windows, "read in several windows");
  if (cut.words > 0)
    std::fprintf(stderr,
        "cloze: %lld words have more pieces than the model sees at once and were read off their "
        "first ones\n",
        (long long)cut.words);
}

}  // namespace cloze
