// The encoder: embeddings and a stack of blocks.
#ifndef CLOZE_ENCODER_MODULES_ENCODER_H_
#define CLOZE_ENCODER_MODULES_ENCODER_H_

#include <array>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "encoder/modules/block.h"
#include "encoder/modules/model_shape.h"

namespace cloze {

// Embeddings and blocks: an encoder, or a decoder (causal), which may attend to Pass::states.
class Encoder {
 public:
  // Data for the backward pass, in the arena of the forward pass.
  struct Saved {
    Norm::Saved embeddings, first;  // first: pre-norm models' norm before block 0
    Mat embedded;                   // [rows, embedding] input of the projection
    int lowest = -1;  // lowest trainable block; -1: embeddings; number of blocks: none
    std::vector<Block::Saved> blocks;  // from `lowest` on; empty with Pass::recompute
    std::vector<BlockState> states;    // with Pass::recompute: inputs of these blocks, last output
    std::optional<TargetRows> targets;
    std::array<ConstMat, 2> rotary;  // Pass::rotary
    RelativeContext distances;
    int32_t* largest = nullptr;  // [padded targets, hidden] rows of Batch::largest
    Mat y;  // [padded targets, hidden] last hidden states of the batch's targets
  };
  // Receives hidden states [rows, hidden], numbered as in Hugging Face:
  // 0 after the embeddings, then one per block. Valid during the call.
  using Observer = absl::FunctionRef<void(int index, ConstMat hidden)>;

  // Adds its parameters to `store`.
  Encoder(ParamStore* store, const ModelShape& config, ModuleKeys keys);

  void AddLora(ParamStore* store, const LoraPlan& plan);

  // True if it has trainable parameters.
  bool requires_grad(const Pass& pass) const { return LowestTrainable(pass) < config_.layers; }

  // Returns the last hidden states of the targets, and the data for the backward pass.
  Saved Forward(const Pass& pass) const;
  // Returns the same hidden states [padded targets, hidden], without data for the backward pass.
  Mat Infer(const Pass& pass) const;
  // Passes all hidden states to the observer. probs: empty, or one pointer per block (see
  // AttentionForward).
  void Observe(const Pass& pass, Observer observe, const std::vector<float*>& probs = {}) const;
  // Adds to the gradients of all trainable parameters. Overwrites dy [padded targets, hidden].
  void Backward(const Pass& pass, const Saved& saved, Mat dy) const;
  // Returns the last hidden states [B, S, hidden] or, for a head with one row per text, what it
  // reads [B, hidden].
  Value Export(const GraphPass& pass) const;

  // Word embeddings [vocab, embedding], tied to the masked-LM decoder.
  ParamId word_embeddings() const { return words_; }

 private:
  int LowestTrainable(const Pass& pass) const;
  // The way in which a target's output is made of several rows; kClass: of one.
  Pool PoolOf(const Batch& batch) const {
    return pool_ != Pool::kClass ? pool_
           : !batch.averages()   ? Pool::kClass
           : batch.largest       ? Pool::kMax
                                 : Pool::kMean;
  }
  // Returns for each target the range of rows that PoolOf pools: those of its sequence unless pool_
  // is kClass, else those of its word, counted among the rows of saved.targets.
  std::vector<RowRange> Ranges(const Batch& batch) const;
  // Returns the output of the targets [padded targets, n]: y, or means or the largest of its rows,
  // which *largest receives.
  Mat Pooled(const Pass& pass, Mat y, int32_t** largest) const;
  // Returns the pass with rotary tables or `distances`, if the model uses them.
  Pass WithPositions(const Pass& pass, bool training, RelativeContext* distances) const;
  BlockState NewState(const Pass& pass, int64_t rows) const;
  // Returns the targets for the last block, null for the others.
  std::optional<TargetRows> TargetsOf(int block, const std::optional<TargetRows>& targets) const {
    return block + 1 == config_.layers && pool_ == Pool::kClass ? targets : std::nullopt;
  }
  void Embed(const Pass& pass, const BlockState& out, Saved* saved) const;
  // Returns the output of the first `count` blocks, and keeps nothing else.
  BlockState RunBlocks(const Pass& pass, int count, const std::optional<TargetRows>& targets,
      Observer observe, const std::vector<float*>& probs = {}) const;
  void EmbeddingsBackward(const Pass& pass, const Saved& saved, const BlockState& d) const;
  BlockValues Embed(const GraphPass& pass) const;

  ModelShape config_;
  bool pre_;
  Pool pool_;  // of each target's sequence; kClass: see Batch::averages
  ParamId words_, positions_ = -1, types_ = -1;
  RelativeEmbedding relative_;
  Norm embedding_norm_, first_norm_;
  Linear projection_;  // [hidden, embedding], if projects_embeddings()
  std::vector<Block> blocks_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ENCODER_H_
