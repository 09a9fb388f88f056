#include "tools/infer.h"

#include <algorithm>
#include <cstdio>

#include "core/base/number.h"
#include "tasks/compute.h"
#include "tasks/long_text.h"

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

std::string Where(const InputOptions& input, const InputRecord& record) {
  return absl::StrCat(
      input.path == "-" ? "standard input" : QuotePath(input.path), ":", record.line);
}

absl::StatusOr<int> AdapterOf(
    const Session& session, const InputRecord& record, const InputOptions& input) {
  auto adapter = session.AdapterNamed(record.adapter);
  if (!adapter.ok()) return Annotate(adapter.status(), Where(input, record));
  return adapter;
}

// Longest text that the classifier reads.
int64_t TextTokens(const Session& session, int adapter) {
  const int64_t trained = session.config(adapter).reading.max_tokens;
  return trained > 0 ? std::min(trained, session.max_tokens()) : session.max_tokens();
}

}  // namespace

void AddInferOptions(CLI::App* command, InferOptions* options, bool input) {
  command
      ->add_option("--model", options->model,
          "Model folder: a run of ours, a Hugging Face BERT folder, or an adapter (LoRA).")
      ->required();
  command
      ->add_option("--adapter", options->adapters,
          "An adapter of the model, for the JSONL lines with \"adapter\": NAME; without a name for "
          "the others. Repeatable.")
      ->type_name("[NAME=]DIR")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--compute", options->compute,
          "f32; bf16: two to three times as fast where the CPU multiplies it, scores differ in the "
          "third digit; auto: f32.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  if (input) AddInputOptions(command, &options->input);
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

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options, HeadKind head) {
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(ComputeNamed(options->compute), Use::kInference));
  ASSIGN_OR_RETURN(auto session, Session::Open(options->model, compute, AdaptersOf(*options)));
  if (head != HeadKind::kNone) RETURN_IF_ERROR(session->Require(head));
  options->input.vocab_size = session->config().vocab;
  options->input.records *=
      static_cast<int64_t>(std::clamp<size_t>(options->adapters.size(), 1, kMostAdapters));
  return session;
}

absl::StatusOr<Query> QueryOfRecord(
    const Session& session, const InputRecord& record, const InputOptions& input, CutTexts* cut) {
  ASSIGN_OR_RETURN(const int adapter, AdapterOf(session, record, input));
  if (record.kind == InputRecord::Kind::kIds || !record.ids.empty()) {
    Query query{.ids = record.ids,
        .second = static_cast<int64_t>(record.ids.size()),
        .rows = {},
        .adapter = adapter};
    if (query.second > session.max_tokens() || query.second == 0) {
      return Error(Exit::kData, absl::StrCat(Where(input, record), ": ids: ", query.second,
                                    " tokens, the model takes 1 to ", session.max_tokens()));
    }
    return query;
  }
  const auto tokenizer = session.TokenizerOr();
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), Where(input, record));
  Encoding encoding = record.kind == InputRecord::Kind::kPair
                          ? (*tokenizer)->EncodePair(record.text, record.text_pair)
                      : record.kind == InputRecord::Kind::kWords
                          ? (*tokenizer)->EncodeWords(record.words)
                          : (*tokenizer)->Encode(record.text);
  int64_t dropped = 0;
  Query query = QueryOf(std::move(encoding), session.max_tokens(), &dropped);
  query.adapter = adapter;
  cut->texts += dropped > 0;
  cut->tokens += dropped;
  cut->max_tokens = session.max_tokens();
  return query;
}

absl::StatusOr<std::vector<Query>> QueriesOfText(
    const Session& session, const InputRecord& record, const InputOptions& input, CutTexts* cut) {
  ASSIGN_OR_RETURN(const int adapter, AdapterOf(session, record, input));
  const Reading& reading = session.config(adapter).reading;
  const bool pair = record.kind == InputRecord::Kind::kPair;
  std::vector<Query> queries;
  if (!record.ids.empty() || (!pair && record.kind != InputRecord::Kind::kText)) {
    ASSIGN_OR_RETURN(Query query, QueryOfRecord(session, record, input, cut));
    query.rows = {0};
    queries.push_back(std::move(query));
    return queries;
  }
  if (reading.pairs && !pair) {
    return Error(
        Exit::kData, absl::StrCat(Where(input, record),
                         ": one text; this model was trained on pairs, so \"text_pair\" (or, in ",
                         "text lines, a tab and the second text) is expected"));
  }
  if (reading.max_tokens > 0 && !reading.pairs && pair) {
    return Error(Exit::kData, absl::StrCat(Where(input, record),
                                  ": a pair of texts; this model was trained on single ones"));
  }
  const auto tokenizer = session.TokenizerOr();
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), Where(input, record));
  const int64_t most = TextTokens(session, adapter);
  int64_t dropped = 0;
  for (TextSequence& sequence : SequencesOfText(**tokenizer, record.text,
           pair ? &record.text_pair : nullptr, most, reading.long_texts, &dropped)) {
    queries.push_back({.ids = std::move(sequence.ids),
        .second = sequence.second,
        .rows = {0},
        .adapter = adapter});
  }
  cut->texts += dropped > 0;
  cut->tokens += dropped;
  cut->windows += queries.size() > 1;
  if (dropped > 0 || queries.size() > 1) cut->max_tokens = most;
  return queries;
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

std::string OpenObject(const InputRecord& record) {
  return record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", ");
}

void ReportCut(const CutTexts& cut) {
  const auto say = [&](int64_t texts, const std::string& what) {
    if (texts > 0)
      std::fprintf(stderr, "cloze: longer than the model's %lld tokens: %s, %s\n",
          (long long)cut.max_tokens, Counted(texts, "text").c_str(), what.c_str());
  };
  say(cut.texts, absl::StrCat(Counted(cut.tokens, "token"), " cut off"));
  say(cut.windows, "read in several windows");
}

}  // namespace cloze
