#include "tools/infer.h"

#include <algorithm>
#include <cstdio>

#include "core/base/number.h"
#include "tasks/compute.h"

namespace cloze {
namespace {

constexpr size_t kMostAdapters = 32;  // for which records are read at once

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

}  // namespace

void AddInferOptions(CLI::App* command, InferOptions* options, bool input) {
  command
      ->add_option("--model", options->model,
          "Model folder: a run, a Hugging Face folder, or an adapter folder (LoRA).")
      ->required();
  command
      ->add_option("--adapter", options->adapters,
          "Adapter folder to use: with a name for the JSON lines with \"adapter\": NAME, without "
          "one for all others. Repeatable.")
      ->type_name("[NAME=]FOLDER")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--compute", options->compute,
          "Type of activations. auto: f32. bf16: two to three times as fast on CPUs with "
          "AVX512_BF16; scores change by up to 0.02.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  if (input) AddInputOptions(command, &options->input);
}

void AddViterbi(CLI::App* command, std::optional<bool>* viterbi) {
  AddSwitch(command, "viterbi",
      "Labels of a span scheme (BIO, IOBES): decode the best sequence that the scheme allows. "
      "Default: as in training.",
      "Use the best label of each word.", [=](bool on) { *viterbi = on; });
}

absl::StatusOr<BaseAndAdapter> OneModel(const InferOptions& options) {
  const std::vector<NamedAdapter> named = AdaptersOf(options);
  const bool is_adapter = IsAdapter(options.model);
  if (named.size() + is_adapter > 1)
    return UsageError("--adapter: one adapter at a time can be evaluated");
  BaseAndAdapter both = {options.model, named.empty() ? "" : named[0].folder};
  if (is_adapter) {
    both.adapter = options.model;
    ASSIGN_OR_RETURN(both.base, BaseOf(options.model));
  }
  return both;
}

RuntimeSpec::Compute ComputeNamed(const std::string& name) {
  return name == "bf16" ? RuntimeSpec::BF16 : name == "f32" ? RuntimeSpec::F32 : RuntimeSpec::AUTO;
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options) {
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(ComputeNamed(options->compute), Use::kInference));
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
    const std::function<absl::Status(const std::vector<InputRecord>&, LineWriter*)>& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  LineWriter writer;
  std::vector<InputRecord> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(input.records, &records));
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
