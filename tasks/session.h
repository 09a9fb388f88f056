// A model folder opened for use: tokenizer, model, and packed batches through it.
#ifndef CLOZE_TASKS_SESSION_H_
#define CLOZE_TASKS_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/text/tokenizer.h"
#include "encoder/model.h"

namespace cloze {

// A sequence, special tokens included, and the tokens whose logits are wanted. `second` is the index of the first token of type 1.
struct Query {
  std::vector<int32_t> ids;
  int64_t second = 0;
  std::vector<int32_t> rows;
};

// Not thread-safe.
class Session {
 public:
  // kNoInput, kData and kMismatch for a folder that is missing, broken or lacks the head that it claims.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& folder, DType compute);

  // kMismatch unless the model has this head; the message says what it is for.
  absl::Status Require(HeadKind head) const;

  // Null for a folder without a tokenizer, which only takes ids; TokenizerOr says so.
  absl::StatusOr<const Tokenizer*> TokenizerOr() const;
  const ModelConfig& config() const { return model_->config(); }
  // Longest sequence.
  int64_t max_tokens() const { return config().max_positions - config().position_offset; }

  // f(i, logits [rows of query i, labels] f32) for each query in order.
  absl::Status Logits(absl::Span<const Query> queries, absl::FunctionRef<void(int64_t query, ConstMat logits)> f);
  // f(i, layer, hidden [tokens, hidden] f32) for each query and each layer: 0 the embeddings, then one a block. With only_last, the last
  // layer only.
  absl::Status Hidden(absl::Span<const Query> queries, bool only_last,
                      absl::FunctionRef<void(int64_t query, int layer, ConstMat hidden)> f);

 private:
  Session() = default;
  absl::Status Check(absl::Span<const Query> queries) const;
  // f(first, last, step) for each batch of queries [first, last).
  void ForEachBatch(absl::Span<const Query> queries, absl::FunctionRef<void(int64_t first, int64_t last, const Step& step)> f);

  std::string folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  absl::Status no_tokenizer_;
  std::unique_ptr<Model> model_;
  DType compute_ = DType::kF32;
};

// exp(x - max) / sum in place.
void Softmax(float* x, int64_t n);

// 1 / (1 + exp(-x)).
float Logistic(float x);

// Of several labels those whose probability is at least `threshold`.
std::vector<bool> Chosen(absl::Span<const float> logits, float threshold);

// The query of an encoding, cut to max_tokens; *cut (may be null) gets the number of tokens that were dropped.
Query QueryOf(const Tokenizer& tokenizer, Encoding encoding, int64_t max_tokens, int64_t* cut);

}  // namespace cloze

#endif  // CLOZE_TASKS_SESSION_H_
