// Generates texts with a decoder and a cache of keys and values. A prompt is the text to continue
// or, if the decoder has an encoder, the source.
#ifndef CLOZE_TASKS_INFERENCE_GENERATOR_H_
#define CLOZE_TASKS_INFERENCE_GENERATOR_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tasks/inference/beams.h"
#include "tasks/inference/session.h"

namespace cloze {

struct GenerateOptions {
  int64_t max_new_tokens = 50;
  SamplingRule rule = {};
  double repetition_penalty = 1;
  int beams = 1;
  double length_penalty = 1;
  uint64_t seed = 1;
  int32_t end_token = -1;                        // -1: the model's
  std::vector<std::string> stop = {};            // texts that end generation; require a tokenizer
  const std::atomic<bool>* stop_flag = nullptr;  // may be null
};

// Not thread-safe.
class Generator {
 public:
  // kMismatch unless the session has a decoder; kUsage for options that exclude each other or do
  // not fit the vocabulary. `session` must outlive this.
  static absl::StatusOr<Generator> Create(Session& session, GenerateOptions options);
  // Checks nothing; for evaluations. `tokenizer` may be null if there are no stop texts; all must
  // outlive this.
  Generator(Model& model, const ModelConfig& config, const Tokenizer* tokenizer, DType compute,
      GenerateOptions options);

  // From now on uses this adapter, see Model::NewPass.
  void UseAdapter(int adapter) { adapter_ = adapter; }

  // Returns for each prompt its ids and the new ones or, with an encoder, the start token and the
  // new ones. Prompt i has the number first + i; number, seed and position determine random
  // choices. The result for a prompt depends neither on the other prompts nor on threads. Requires
  // prompts with 1 to max_tokens - 1 ids below the vocabulary. Without beams, calls on_token after
  // each step with the index of a prompt and its ids so far. kInterrupted if *stop_flag; kInternal
  // if logits are not finite.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
      absl::Span<const std::vector<int32_t>> prompts, uint64_t first,
      absl::FunctionRef<void(size_t prompt, absl::Span<const int32_t> ids)> on_token);

  // Returns the text after the first `prompt` of `ids`, up to the end token or a stop text.
  // Requires a tokenizer.
  std::string Continuation(absl::Span<const int32_t> ids, size_t prompt) const;
  // Returns all of the text after the first `prompt` of `ids`.
  std::string NewText(absl::Span<const int32_t> ids, size_t prompt) const;

 private:
  struct Running;
  bool Ends(const Hypothesis& hypothesis, size_t prompt) const;
  // True if the model has an encoder, which reads the prompts.
  bool encodes() const { return config_.encoder != nullptr; }
  // Allocates the cache for these prompts and what follows them, and empties it.
  void Reserve(absl::Span<const std::vector<int32_t>> prompts);
  // Applies the repetition penalty, and the tokens that the model forces or forbids, to the scores
  // of the token after `ids`, of which the first `prompt` were given.
  void Constrain(absl::Span<const int32_t> ids, size_t prompt, absl::Span<float> scores) const;
  // Generate for prompts that pass through the model together; appends to *results.
  absl::Status GenerateGroup(absl::Span<const std::vector<int32_t>> prompts, uint64_t first,
      absl::FunctionRef<void(size_t prompt, absl::Span<const int32_t> ids)> on_token,
      std::vector<std::vector<int32_t>>* results);
  // Returns logits [rows, vocab] f32 of the hypotheses' last tokens, after those tokens, or the
  // whole prompt, have passed the model.
  ConstMat Logits(absl::Span<Hypothesis* const> hypotheses);
  // Continues one prompt by the logits of its hypotheses.
  void Advance(Running& running, absl::Span<const absl::Span<float>> logits) const;

  Model& model_;
  const ModelConfig& config_;
  const Tokenizer* tokenizer_;
  DType compute_;
  int adapter_ = 0;
  GenerateOptions options_;
  // For each block the keys and values [rows, 2 hidden] of the texts, then for each block those of
  // the sources. The first `used_` rows of the texts are in use.
  LargeMemory memory_;
  std::vector<Mat> cache_;
  int32_t used_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_GENERATOR_H_
