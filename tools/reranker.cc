#include "tools/reranker.h"

#include <cmath>

namespace cloze {

absl::StatusOr<Reranker> Reranker::Open(const InferOptions& options, const std::string& folder) {
  Reranker reranker;
  ASSIGN_OR_RETURN(
      reranker.session_, Session::Open(folder, ComputeOf(options), {}, Int8Of(options)));
  const ModelConfig& config = reranker.session_->config();
  if (config.head != HeadKind::kSequenceClassification || config.logits() > 2)
    return Error(Exit::kMismatch, QuotePath(folder),
        ": cannot score pairs: expected a sequence classifier with one number or two labels");
  RETURN_IF_ERROR(reranker.session_->TokenizerOr().status());
  return reranker;
}

absl::StatusOr<std::vector<float>> Reranker::Score(
    const std::string& query, absl::Span<const std::string> texts) {
  ASSIGN_OR_RETURN(const Tokenizer* const tokenizer, session_->TokenizerOr());
  const int64_t longest = session_->max_tokens();
  std::vector<Query> pairs;
  for (const std::string& text : texts) {
    EncodedText pair =
        SequencesOfText(*tokenizer, query, &text, longest, SequenceClassificationSpec::HEAD);
    if (pair.stats.cut_tokens > 0) cut_.Add(pair.stats.cut_tokens, 1, longest);
    pairs.push_back({std::move(pair.windows[0])});
  }
  std::vector<float> scores(texts.size());
  RETURN_IF_ERROR(session_->Logits(pairs, [&](int64_t i, ConstMat logits) {
    const float* z = logits.f32();
    scores[i] = logits.cols == 1 ? z[0] : 1 / (1 + std::exp(z[0] - z[1]));
  }));
  return scores;
}

}  // namespace cloze
