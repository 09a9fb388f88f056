#include "tools/text_vectors.h"

#include <algorithm>
#include <cstdio>

namespace cloze {
namespace {

constexpr int64_t kTextsAtOnce = 1024;

}  // namespace

absl::StatusOr<TextEncoder> TextEncoder::Open(InferOptions* options) {
  TextEncoder encoder;
  const std::string format = std::exchange(options->format, "");
  ASSIGN_OR_RETURN(encoder.session_, OpenSession(options));
  options->format = format;
  RETURN_IF_ERROR(encoder.session_->TokenizerOr().status());
  ASSIGN_OR_RETURN(const auto vectors, VectorsOf(options->model));
  SentenceVectors plain;
  plain.pool = "mean", plain.normalize = true;
  encoder.pooling_ = FolderPooling(vectors.value_or(plain));
  RETURN_IF_ERROR(encoder.session_->AdapterNamed("").status());
  return encoder;
}

absl::StatusOr<std::vector<float>> TextEncoder::Encode(
    TextRole role, absl::Span<const std::string> texts, absl::string_view what) {
  std::optional<SentenceVectors> vectors = pooling_.vectors;
  RETURN_IF_ERROR(UsePrompt(role, &*vectors));
  std::vector<float> out;
  out.reserve(texts.size() * dimensions());
  Reminder report;
  for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    std::vector<Record> records;
    for (const std::string& text : texts.subspan(begin, kTextsAtOnce))
      records.emplace_back().text = text;
    RETURN_IF_ERROR(ForEachHidden(*session_, records, {}, vectors, /*only_last=*/true, &cut_,
        [&](size_t, const absl::Status&, int, ConstMat hidden) {
          const std::vector<float> v = TextVector(hidden, pooling_);
          out.insert(out.end(), v.begin(), v.end());
          return absl::OkStatus();
        }));
    RETURN_IF_ERROR(CheckSignals());
    if (!report.Due()) continue;
    std::fprintf(stderr, "cloze: %.*s: %zu of %zu encoded\n", int(what.size()), what.data(),
        std::min(begin + kTextsAtOnce, texts.size()), texts.size());
  }
  return out;
}

}  // namespace cloze
