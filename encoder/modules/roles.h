// The modules of a model, and the parameters of a module.
#ifndef CLOZE_ENCODER_MODULES_ROLES_H_
#define CLOZE_ENCODER_MODULES_ROLES_H_

#include <cstdint>

#include "core/tensor/param_store.h"

namespace cloze {

// The module of a model that a parameter belongs to.
enum class Role : uint8_t {
  kNone,
  kWordEmbeddings,
  kPositionEmbeddings,
  kTokenTypeEmbeddings,
  kEmbeddingsNorm,
  kEmbeddingsProjection,  // from the size of the embeddings to hidden
  kRelativePositions,     // table by distance, of all blocks
  kRelativeNorm,
  kPositionQuery,  // of the vectors of distances, unless they share the block's query and key
  kPositionKey,
  kConvolution,  // after block 0
  kConvolutionNorm,
  kQuery,
  kKey,
  kValue,
  kQueryKeyValue,  // the three in one matrix
  kAttentionOutput,
  kAttentionNorm,    // after the residual sum of attention; in a pre-norm model before attention
  kGate,             // of a gated MLP, whose first layer has the activation function
  kIntermediate,     // first layer of the MLP; in a gated MLP it may hold the gate as well
  kOutput,           // second layer of the MLP
  kFeedForwardNorm,  // after the residual sum of the MLP; in a pre-norm model before the MLP
  kFinalNorm,        // of a pre-norm model, after the last block
  kCrossQuery,       // of a decoder's attention to its encoder
  kCrossKey,
  kCrossValue,
  kCrossOutput,
  kCrossNorm,
  kTransform,  // of a masked-LM head: the dense layer and the norm before the decoder
  kTransformNorm,
  kDecoder,        // of a masked-LM head: weight and bias are tied, the folder may hold copies
  kDecoderBias,    // owns the bias
  kPooler,         // dense layer before the output layer of a head
  kPooledOutput,   // output layer after the pooler
  kHeadOutput,     // output layer of a head without a pooler
  kDiscriminator,  // of a head that finds replaced tokens: the dense layer
  kDiscriminatorOutput,  // and the output layer
  kCrf
};

// The parameters of a module.
enum class ParamKind : uint8_t { kWeight, kBias, kLoraA, kLoraB };

// Returns the key of a module's weight, bias or LoRA matrix.
inline ParamKey KeyOf(ParamKey module, ParamKind kind) {
  static constexpr const char* kSuffixes[] = {
      ".weight", ".bias", ".lora_A.weight", ".lora_B.weight"};
  module.kind = kind;
  module.name += kSuffixes[static_cast<int>(kind)];
  return module;
}
inline bool IsLora(const ParamKey& key) {
  return key.kind == ParamKind::kLoraA || key.kind == ParamKind::kLoraB;
}
// Returns the weight of the model's module with this role and layer, or -1.
inline ParamId FindWeight(const ParamStore& store, Role role, int layer) {
  return store.Find(role, ParamKind::kWeight, layer);
}

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ROLES_H_
