// The encoder: embeddings and a stack of blocks.
#ifndef CLOZE_ENCODER_MODULES_ENCODER_H_
#define CLOZE_ENCODER_MODULES_ENCODER_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "encoder/modules/block.h"

namespace cloze {

class Encoder {
 public:
  // What backward needs. Lives in the arena of the forward pass.
  struct Saved {
    Norm::Saved embeddings, first;     // first: pre-norm models' norm before block 0
    std::vector<Block::Saved> blocks;  // from `lowest` on; none when backward runs them again
    std::vector<Stream>
        streams;      // then what goes into each of these blocks, and what comes out of the last
    int lowest = -1;  // block that learns, with none below; -1: the embeddings do; the number of
                      // blocks: nothing does
    std::optional<TargetRows> targets;
    Mat y;  // [padded targets, hidden] last hidden states of the batch's targets
  };
  // Sees hidden states as Hugging Face numbers them: 0 after the embeddings, then one a block.
  // [rows, hidden], valid during the call.
  using Observer = absl::FunctionRef<void(int index, ConstMat hidden)>;

  // Adds its parameters under Hugging Face's names.
  Encoder(ParamStore* store, const ModelConfig& config);

  void AddLora(ParamStore* store, const LoraPlan& plan);

  // Does anything of it learn? If not, nobody needs the gradient of its result.
  bool trained(const Pass& pass) const { return LowestTrained(pass) < config_.layers; }

  // Last hidden states of the batch's targets, and what backward needs.
  Saved Forward(const Pass& pass) const;
  // The same numbers [padded targets, hidden]; keeps nothing but the result, so that memory does
  // not grow with the number of blocks.
  Mat Infer(const Pass& pass) const;
  // Shows all hidden states, and keeps nothing. probs: none, or one pointer a block as in
  // AttentionForward.
  void Observe(const Pass& pass, Observer observe, const std::vector<float*>& probs = {}) const;
  // dy [padded targets, hidden] is overwritten. Adds to the gradients of all trainable parameters.
  void Backward(const Pass& pass, const Saved& saved, Mat dy) const;

  // [vocab, hidden]; the masked-LM decoder is tied to it.
  ParamId word_embeddings() const { return words_; }
  // Fills the position table with amplitude times sinusoids: sin for even columns i, cos for odd,
  // of n / base^(i / hidden) (Bishop & Bishop, eq. 12.25).
  void SetSinusoids(ParamStore* store, double amplitude) const;
  // As Block has it, for each block.
  void StartKeysAsQueries(ParamStore* store, float gain) const;
  ParamId position_embeddings() const { return positions_; }

 private:
  int LowestTrained(const Pass& pass) const;
  Stream NewStream(const Pass& pass, int64_t rows) const;
  // The last block's; none for the others.
  std::optional<TargetRows> TargetsOf(int block, const std::optional<TargetRows>& targets) const;
  void Embed(
      const Pass& pass, const Stream& out, Norm::Saved* embeddings, Norm::Saved* first) const;
  Stream Below(const Pass& pass, int count, const std::optional<TargetRows>& targets,
      Observer observe, const std::vector<float*>& probs = {}) const;
  void EmbeddingsBackward(const Pass& pass, const Saved& saved, const Stream& d) const;
  const std::vector<int32_t>& PositionRows(const Pass& pass, std::vector<int32_t>* shifted) const;
  // The batch's types; zeros for a model that has but one, where both texts of a pair are the same,
  // as RoBERTa has it.
  const std::vector<int32_t>& TypeRows(const Pass& pass, std::vector<int32_t>* zeros) const;

  ModelConfig config_;
  bool pre_;
  ParamId words_, positions_, types_ = -1;
  Norm embedding_norm_, first_norm_;
  std::vector<Block> blocks_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ENCODER_H_
