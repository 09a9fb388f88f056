#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/ascii.h"
#include "core/base/file.h"
#include "core/text/files/word_vectors.h"
#include "tasks/training/run_inputs.h"

namespace cloze {
namespace {

constexpr char kField[] = "model.encoder.word_vectors";

absl::StatusOr<StartVectors> Read(
    const std::string& path, const ModelConfig& config, const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const WordVectors vectors, ReadWordVectors(path));
  if (vectors.dim != config.embedding_size()) {
    return Error(Exit::kMismatch, QuotePath(path), " has ", vectors.dim,
        " dimensions: expected the size of the embeddings, ", config.embedding_size());
  }
  StartVectors start;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id) || tokenizer.ContinuesWord(id)) continue;
    const std::string text = tokenizer.Decode({id});
    const auto at = vectors.index.find(std::string(absl::StripAsciiWhitespace(text)));
    if (at == vectors.index.end()) continue;
    start.ids.push_back(id);
    const auto row = vectors.row(at->second);
    start.values.insert(start.values.end(), row.begin(), row.end());
  }
  const double squares =
      std::inner_product(start.values.begin(), start.values.end(), start.values.begin(), 0.0);
  if (squares == 0) {
    return Error(Exit::kMismatch, QuotePath(path),
        ": has no word of the vocabulary (learn both from the same text, lower-cased or not)");
  }
  const auto scale = static_cast<float>(
      config.initializer.range * std::sqrt(static_cast<double>(start.values.size()) / squares));
  for (float& value : start.values) value *= scale;
  return start;
}

}  // namespace

void StartVectors::CopyTo(Mat table) const {
  const float* from = values.data();
  for (const int32_t id : ids) {
    std::copy_n(from, table.cols, table.f32(id));
    from += table.cols;
  }
}

std::string StartVectors::Describe(int64_t vocab) const {
  return absl::StrCat(kField, ": ", ids.size(), " of ", vocab, " tokens start from word vectors");
}

absl::StatusOr<StartVectors> ReadStartVectors(
    const LoadedSpec& loaded, const ModelConfig& config, const Tokenizer& tokenizer) {
  const std::string& path = loaded.spec.model().encoder().word_vectors();
  if (path.empty()) return StartVectors();
  if (IsStream(path))
    return SpecError(loaded, kField, QuoteInput(path),
        " can be read only once, but it is read at each start: expected a file");
  auto start = Read(path, config, tokenizer);
  return start.ok() ? start : AtField(loaded, kField, start.status());
}

}  // namespace cloze
