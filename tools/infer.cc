#include "tools/infer.h"

#include <cstdio>

#include "tasks/data/long_text.h"
#include "tasks/training/setup.h"

namespace cloze {
namespace {

constexpr int64_t kRecords = 256;

std::string Where(const InputOptions& input, const InputRecord& record) {
  return absl::StrCat(input.path == "-" ? "standard input" : Quote(input.path), ":", record.line);
}

}  // namespace

void AddInferOptions(CLI::App* command, InferOptions* options, bool input) {
  command->add_option("--model", options->model, "Model folder: a run of ours or a Hugging Face BERT folder.")->required();
  command->add_option("--compute", options->compute, "Type of activations: auto, f32 or bf16.")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  if (input) AddInputOptions(command, &options->input);
}

RuntimeSpec::Compute ComputeNamed(const std::string& name) {
  return name == "bf16" ? RuntimeSpec::BF16 : name == "f32" ? RuntimeSpec::F32 : RuntimeSpec::AUTO;
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(InferOptions* options, HeadKind head) {
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(ComputeNamed(options->compute), Use::kInference));
  ASSIGN_OR_RETURN(auto session, Session::Open(options->model, compute));
  if (head != HeadKind::kNone) RETURN_IF_ERROR(session->Require(head));
  options->input.vocab_size = session->config().vocab;
  return session;
}

absl::StatusOr<Query> QueryOfRecord(const Session& session, const InputRecord& record, const InputOptions& input, CutTexts* cut) {
  if (record.kind == InputRecord::Kind::kIds || !record.ids.empty()) {
    Query query{.ids = record.ids, .second = static_cast<int64_t>(record.ids.size()), .rows = {}};
    if (query.second > session.max_tokens() || query.second == 0) {
      return Error(Exit::kData,
                   absl::StrCat(Where(input, record), ": ids: ", query.second, " tokens, the model takes 1 to ", session.max_tokens()));
    }
    return query;
  }
  const auto tokenizer = session.TokenizerOr();
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), Where(input, record));
  Encoding encoding = record.kind == InputRecord::Kind::kPair    ? (*tokenizer)->EncodePair(record.text, record.text_pair)
                      : record.kind == InputRecord::Kind::kWords ? (*tokenizer)->EncodeWords(record.words)
                                                                 : (*tokenizer)->Encode(record.text);
  int64_t dropped = 0;
  Query query = QueryOf(**tokenizer, std::move(encoding), session.max_tokens(), &dropped);
  cut->texts += dropped > 0;
  cut->tokens += dropped;
  return query;
}

absl::StatusOr<std::vector<Query>> QueriesOfText(const Session& session, const InputRecord& record, const InputOptions& input,
                                                 CutTexts* cut) {
  const Reading& reading = session.config().reading;
  const bool pair = record.kind == InputRecord::Kind::kPair;
  std::vector<Query> queries;
  if (!record.ids.empty() || (!pair && record.kind != InputRecord::Kind::kText)) {
    ASSIGN_OR_RETURN(Query query, QueryOfRecord(session, record, input, cut));
    query.rows = {0};
    queries.push_back(std::move(query));
    return queries;
  }
  if (reading.pairs && !pair) {
    return Error(Exit::kData, absl::StrCat(Where(input, record), ": one text; this model was trained on pairs, so \"text_pair\" (or, in ",
                                           "text lines, a tab and the second text) is expected"));
  }
  const auto tokenizer = session.TokenizerOr();
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), Where(input, record));
  int64_t dropped = 0;
  for (TextSequence& sequence :
       SequencesOfText(**tokenizer, record.text, pair ? &record.text_pair : nullptr, TextTokens(session), reading.long_texts, &dropped)) {
    queries.push_back({.ids = std::move(sequence.ids), .second = sequence.second, .rows = {0}});
  }
  cut->texts += dropped > 0;
  cut->tokens += dropped;
  cut->windows += queries.size() > 1;
  return queries;
}

int64_t TextTokens(const Session& session) {
  const int64_t trained = session.config().reading.max_tokens;
  return trained > 0 ? std::min(trained, session.max_tokens()) : session.max_tokens();
}

absl::Status ForEachRecords(const InputOptions& input, const std::function<absl::Status(const std::vector<InputRecord>&, LineWriter*)>& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  LineWriter writer;
  std::vector<InputRecord> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(kRecords, &records));
    if (records.empty()) return writer.Flush();
    const absl::Status status = f(records, &writer);
    RETURN_IF_ERROR(writer.Flush());
    RETURN_IF_ERROR(status);
  }
}

std::string OpenObject(const InputRecord& record) { return record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", "); }

void ReportCut(const CutTexts& cut, int64_t max_tokens) {
  const auto say = [&](int64_t texts, const std::string& what) {
    if (texts == 0) return;
    std::fprintf(stderr, "cloze: %lld texts were longer than the model's %lld tokens %s\n", (long long)texts, (long long)max_tokens,
                 what.c_str());
  };
  say(cut.texts, absl::StrCat("and lost ", cut.tokens, " tokens"));
  say(cut.windows, "and were read in several windows");
}

}  // namespace cloze
