#include "tools/infer.h"

#include <cstdio>

#include "core/base/number.h"
#include "tasks/training/setup.h"

namespace cloze {
namespace {

constexpr int64_t kRecords = 256;

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

absl::StatusOr<Query> QueryOfRecord(const Session& session, const InputRecord& record, const InputOptions& input, int64_t* cut) {
  const auto where = [&] { return absl::StrCat(input.path == "-" ? "standard input" : Quote(input.path), ":", record.line); };
  if (record.kind == InputRecord::Kind::kIds || !record.ids.empty()) {
    Query query{.ids = record.ids, .second = static_cast<int64_t>(record.ids.size()), .rows = {}};
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
  *cut += dropped > 0;
  return query;
}

absl::Status ForEachRecords(const InputOptions& input, const std::function<absl::Status(const std::vector<InputRecord>&, LineWriter*)>& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
  LineWriter writer;
  std::vector<InputRecord> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(kRecords, &records));
    if (records.empty()) return writer.Flush();
    RETURN_IF_ERROR(f(records, &writer));
    RETURN_IF_ERROR(writer.Flush());
  }
}

std::string OpenObject(const InputRecord& record) { return record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", "); }

void ReportCut(int64_t cut, int64_t max_tokens) {
  if (cut > 0)
    std::fprintf(stderr, "cloze: cut off after the model's %lld tokens: %s\n", (long long)max_tokens, Counted(cut, "text").c_str());
}

}  // namespace cloze
