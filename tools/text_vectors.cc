#include "tools/text_vectors.h"

#include <algorithm>
#include <cstdio>

namespace cloze {
namespace {

constexpr int64_t kTextsAtOnce = 1024;

}  // namespace

absl::StatusOr<TextEncoder> TextEncoder::Open(InferOptions* options) {
  TextEncoder encoder;
  ASSIGN_OR_RETURN(encoder.session_, OpenSession(options));
  RETURN_IF_ERROR(encoder.session_->TokenizerOr().status());
  ASSIGN_OR_RETURN(const auto vectors, VectorsOf(options->model));
  SentenceVectors plain;
  plain.pool = "mean", plain.normalize = true;
  encoder.pooling_ = FolderPooling(vectors.value_or(plain), "");
  ASSIGN_OR_RETURN(encoder.default_adapter_, encoder.session_->AdapterNamed(""));
  return encoder;
}

absl::StatusOr<std::vector<float>> TextEncoder::Encode(
    TextRole role, absl::Span<const std::string> texts, absl::string_view what) {
  std::optional<SentenceVectors> vectors = pooling_.vectors;
  UsePrompt(role, &*vectors);
  std::vector<float> out;
  out.reserve(texts.size() * dimensions());
  Reminder report;
  for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    std::vector<Query> queries;
    for (const std::string& text : texts.subspan(begin, kTextsAtOnce)) {
      Record record;
      record.text = text;
      record = Prepared(std::move(record), vectors);
      ASSIGN_OR_RETURN(Example example, EncodeRecord(record, InputOf(*session_, vectors), &cut_));
      queries.push_back({std::move(example), default_adapter_});
    }
    RETURN_IF_ERROR(session_->Hidden(queries, true, [&](int64_t, int, ConstMat hidden) {
      const std::vector<float> v = TextVector(hidden, pooling_);
      out.insert(out.end(), v.begin(), v.end());
    }));
    RETURN_IF_ERROR(CheckSignals());
    if (!report.Due()) continue;
    std::fprintf(stderr, "cloze: %.*s: %zu of %zu encoded\n", int(what.size()), what.data(),
        std::min(begin + kTextsAtOnce, texts.size()), texts.size());
  }
  return out;
}

}  // namespace cloze
