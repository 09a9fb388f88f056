#include "tools/infer.h"

#include <algorithm>
#include <cstdio>

#include "tasks/training/setup.h"

namespace cloze {
namespace {

constexpr size_t kMostAdapters = 32;  // for which records are read at once

std::vector<NamedAdapter> AdaptersOf(const InferOptions& options) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& text : options.adapters) {
    const size_t equals = text.find('=');
    const bool named = equals != std::string::npos;
    adapters.push_back({named ? text.substr(0, equals) : "", named ? text.substr(equals + 1) : text});
  }
  return adapters;
}

}  // namespace

void AddInferOptions(CLI::App* command, InferOptions* options, bool input) {
  command->add_option("--model", options->model, "Model folder: a run of ours, a Hugging Face BERT folder, or an adapter (LoRA).")
      ->required();
  command
      ->add_option("--adapter", options->adapters,
                   "An adapter of the model, for the JSONL lines with \"adapter\": NAME; without a name for the others. Repeatable.")
      ->type_name("[NAME=]DIR")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--compute", options->compute, "Type of activations: auto, f32 or bf16.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  if (input) AddInputOptions(command, &options->input);
}

absl::StatusOr<BaseAndAdapter> OneModel(const InferOptions& options) {
  const std::vector<NamedAdapter> named = AdaptersOf(options);
  const bool is_adapter = IsAdapter(options.model);
  if (named.size() + is_adapter > 1) return UsageError("--adapter: one adapter at a time can be evaluated");
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

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options, HeadKind head) {
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(ComputeNamed(options->compute), Use::kInference));
  ASSIGN_OR_RETURN(auto session, Session::Open(options->model, compute, AdaptersOf(*options)));
  if (head != HeadKind::kNone) RETURN_IF_ERROR(session->Require(head));
  options->input.vocab_size = session->config().vocab;
  options->input.records *= static_cast<int64_t>(std::clamp<size_t>(options->adapters.size(), 1, kMostAdapters));
  return session;
}

absl::StatusOr<Query> QueryOfRecord(const Session& session, const InputRecord& record, const InputOptions& input, int64_t* cut) {
  const auto where = [&] { return absl::StrCat(input.path == "-" ? "standard input" : Quote(input.path), ":", record.line); };
  const auto adapter = session.AdapterNamed(session.has_named() ? record.adapter : "");
  if (!adapter.ok()) return Annotate(adapter.status(), where());
  if (record.kind == InputRecord::Kind::kIds || !record.ids.empty()) {
    Query query{.ids = record.ids, .second = static_cast<int64_t>(record.ids.size()), .rows = {}, .adapter = *adapter};
    if (query.second > session.max_tokens() || query.second == 0) {
      return Error(Exit::kData, absl::StrCat(where(), ": ids: ", query.second, " tokens, the model takes 1 to ", session.max_tokens()));
    }
    return query;
  }
  const auto tokenizer = session.TokenizerOr();
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), where());
  Encoding encoding = record.kind == InputRecord::Kind::kPair    ? (*tokenizer)->EncodePair(record.text, record.text_pair)
                      : record.kind == InputRecord::Kind::kWords ? (*tokenizer)->EncodeWords(record.words)
                                                                 : (*tokenizer)->Encode(record.text);
  int64_t dropped = 0;
  Query query = QueryOf(**tokenizer, std::move(encoding), session.max_tokens(), &dropped);
  query.adapter = *adapter;
  *cut += dropped > 0;
  return query;
}

absl::Status ForEachRecords(const InputOptions& input, const std::function<absl::Status(const std::vector<InputRecord>&, LineWriter*)>& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  LineWriter writer;
  std::vector<InputRecord> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(input.records, &records));
    if (records.empty()) return writer.Flush();
    RETURN_IF_ERROR(f(records, &writer));
    RETURN_IF_ERROR(writer.Flush());
  }
}

std::string OpenObject(const InputRecord& record) { return record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", "); }

void ReportCut(int64_t cut, int64_t max_tokens) {
  if (cut > 0)
    std::fprintf(stderr, "cloze: %lld texts were longer than the model's %lld tokens and were cut\n", (long long)cut,
                 (long long)max_tokens);
}

}  // namespace cloze
