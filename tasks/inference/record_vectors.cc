#include "tasks/inference/record_vectors.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"
#include "encoder/folder/adapter.h"

namespace cloze {
namespace {

// Returns `text` without white space at its ends and, with `lowercase`, in lower case.
std::string Stripped(const std::string& text, bool lowercase) {
  std::string out;
  size_t end = 0;  // of `out`, after the last code point that is not white space
  for (const char32_t c : CodePoints(text)) {
    if (out.empty() && IsSpace(c)) continue;
    for (const char32_t kept : lowercase ? Lowercase(c) : std::u32string(1, c))
      AppendUtf8(kept, &out);
    if (!IsSpace(c)) end = out.size();
  }
  out.resize(end);
  return out;
}

// Returns the record as the tokenizer gets it.
Record Prepared(Record record, const std::optional<SentenceVectors>& vectors) {
  if (!vectors.has_value()) return record;
  record.text = Stripped(vectors->prompt + record.text, vectors->lowercase);
  record.text_pair = Stripped(record.text_pair, vectors->lowercase);
  return record;
}

}  // namespace

absl::StatusOr<std::optional<SentenceVectors>> VectorsOf(
    const std::string& folder, absl::string_view hint) {
  std::string own = folder;
  if (!PathExists(JoinPath(folder, "modules.json"))) {
    ASSIGN_OR_RETURN(own, BaseFolder(folder));
  }
  auto vectors = ReadSentenceVectors(own);
  if (vectors.ok()) return vectors;
  return Error(ExitOf(vectors.status()), vectors.status().message(), "; ", hint);
}

int64_t LongestText(const ModelConfig& config, const std::optional<SentenceVectors>& vectors) {
  const int64_t most = config.max_tokens();
  return vectors.has_value() && vectors->max_tokens > 0 ? std::min(most, vectors->max_tokens)
                                                        : most;
}

absl::Status UsePrompt(TextRole role, SentenceVectors* vectors) {
  const std::string& prompt =
      role == TextRole::kQuery ? vectors->query_prompt : vectors->document_prompt;
  if (!prompt.empty() && !vectors->includes_prompt)
    return Error(Exit::kMismatch, QuotePath(vectors->folder),
        ": include_prompt false: expected true (prompts are not left out of the pooling)");
  if (!prompt.empty()) vectors->prompt = prompt;
  return absl::OkStatus();
}

TextPooling FolderPooling(std::optional<SentenceVectors> vectors) {
  TextPooling pooling{"mean", false, std::move(vectors)};
  if (!pooling.vectors.has_value()) return pooling;
  pooling.pool = pooling.vectors->pool;
  pooling.normalize = pooling.vectors->normalize;
  return pooling;
}

absl::StatusOr<TextPooling> FolderPooling(
    std::optional<SentenceVectors> vectors, absl::string_view prompt) {
  TextPooling pooling = FolderPooling(std::move(vectors));
  const TextRole role = prompt == "query" ? TextRole::kQuery : TextRole::kDocument;
  if (pooling.vectors.has_value() && !prompt.empty())
    RETURN_IF_ERROR(UsePrompt(role, &*pooling.vectors));
  return pooling;
}

std::vector<float> TextVector(ConstMat hidden, const TextPooling& how, int64_t columns) {
  std::vector<float> vector = Pooled(hidden, how.pool, /*normalize=*/false);
  if (how.vectors.has_value())
    for (const DenseLayer& layer : how.vectors->dense) vector = layer.Forward(vector);
  if (columns > 0) vector.resize(columns);
  if (how.normalize) ScaleToUnitLength(absl::MakeSpan(vector));
  return vector;
}

int64_t ColumnsOf(const TextPooling& how, int64_t hidden) {
  return how.vectors.has_value() ? how.vectors->Columns(hidden) : hidden;
}

absl::Status ForEachHidden(Session& session, absl::Span<const Record> records,
    const RecordSource& source, const std::optional<SentenceVectors>& vectors, bool only_last,
    CutCounts* cut, absl::FunctionRef<absl::Status(size_t, const absl::Status&, int, ConstMat)> f) {
  ModelInput input = session.input();
  input.longest = std::min(input.longest, LongestText(session.config(), vectors));
  const auto encode = [&](size_t i, int adapter, std::vector<Query>* queries) -> absl::Status {
    if (IsEmpty(records[i]) && records[i].kind == Record::Kind::kIds && only_last)
      return absl::OkStatus();
    ASSIGN_OR_RETURN(Example example, EncodeRecord(Prepared(records[i], vectors), input, cut));
    if (!example.ids.empty() || !only_last) queries->push_back({std::move(example), adapter});
    return absl::OkStatus();
  };
  const auto run = [&](absl::Span<const Query> queries, Emit emit) {
    return session.Hidden(queries, only_last, [&](int64_t query, int layer, ConstMat hidden) {
      emit(query, [&](size_t i) { return f(i, {}, layer, hidden); });
    });
  };
  const std::vector<float> zeros(session.config().hidden);
  const auto answer_other = [&](size_t i, const absl::StatusOr<int>& adapter) {
    return f(i, adapter.status(), 0, View(zeros.data(), 1, zeros.size()));
  };
  return ForEachRecord(session, records, source, encode, run, answer_other);
}

}  // namespace cloze
