// The encoder: embeddings and a stack of blocks.
#ifndef CLOZE_ENCODER_MODULES_ENCODER_H_
#define CLOZE_ENCODER_MODULES_ENCODER_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "encoder/modules/block.h"

namespace cloze {

class Encoder {
 public:
  // Data for the backward pass, in the arena of the forward pass.
  struct Saved {
    Norm::Saved embeddings, first;     // first: pre-norm models' norm before block 0
    std::vector<Block::Saved> blocks;  // from `lowest` on; none when backward runs them again
    // The inputs of these blocks and the output of the last.
    std::vector<Stream> streams;
    int lowest = -1;  // lowest trainable block; -1: the embeddings are trainable; the number of
                      // blocks: none is
    std::optional<TargetRows> targets;
    Mat y;  // [padded targets, hidden] last hidden states of the batch's targets
  };
  // Receives hidden states [rows, hidden], numbered as in Hugging Face:
  // 0 after the embeddings, then one per block. Valid during the call.
  using Observer = absl::FunctionRef<void(int index, ConstMat hidden)>;

  // Adds its parameters under Hugging Face's names.
  Encoder(ParamStore* store, const ModelConfig& config);

  void AddLora(ParamStore* store, const LoraPlan& plan);

  // True if it has trainable parameters; otherwise its gradient is not needed.
  bool trained(const Pass& pass) const { return LowestTrained(pass) < config_.layers; }

  // Returns the last hidden states of the targets, and the data for the backward pass.
  Saved Forward(const Pass& pass) const;
  // Computes the same [padded targets, hidden] and keeps only the
  // result, so that memory does not grow with the number of blocks.
  Mat Infer(const Pass& pass) const;
  // Passes all hidden states to the observer. probs: empty,
  // or one pointer per block as in AttentionForward.
  void Observe(const Pass& pass, Observer observe, const std::vector<float*>& probs = {}) const;
  // dy [padded targets, hidden] is overwritten. Adds to the gradients of all trainable parameters.
  void Backward(const Pass& pass, const Saved& saved, Mat dy) const;

  // Word embeddings [vocab, hidden], tied to the masked-LM decoder.
  ParamId word_embeddings() const { return words_; }
  // Fills the position table with sinusoids of the given amplitude: sin (even columns
  // i) and cos (odd i) of n / base^(i / hidden) (Bishop & Bishop, eq. 12.25).
  void SetSinusoids(ParamStore* store, double amplitude) const;
  // Calls the same function of each block.
  void StartKeysAsQueries(ParamStore* store, float gain) const;
  ParamId position_embeddings() const { return positions_; }

 private:
  int LowestTrained(const Pass& pass) const;
  Stream NewStream(const Pass& pass, int64_t rows) const;
  // The targets for the last block, null for the others.
  std::optional<TargetRows> TargetsOf(int block, const std::optional<TargetRows>& targets) const;
  void Embed(
      const Pass& pass, const Stream& out, Norm::Saved* embeddings, Norm::Saved* first) const;
  Stream Below(const Pass& pass, int count, const std::optional<TargetRows>& targets,
      Observer observe, const std::vector<float*>& probs = {}) const;
  void EmbeddingsBackward(const Pass& pass, const Saved& saved, const Stream& d) const;
  const std::vector<int32_t>& PositionRows(const Pass& pass, std::vector<int32_t>* shifted) const;
  // Returns the types of the batch; zeros for a model with one type,
  // where both texts of a pair have the same type, as in RoBERTa.
  const std::vector<int32_t>& TypeRows(const Pass& pass, std::vector<int32_t>* zeros) const;

  ModelConfig config_;
  bool pre_;
  ParamId words_, positions_, types_ = -1;
  Norm embedding_norm_, first_norm_;
  std::vector<Block> blocks_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ENCODER_H_
