// The architecture of an encoder or decoder: what its forward pass computes.
#ifndef CLOZE_ENCODER_MODULES_ARCHITECTURE_H_
#define CLOZE_ENCODER_MODULES_ARCHITECTURE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/ops/activation.h"

namespace cloze {

// The position table: learned, fixed sinusoids, or learned from sinusoids as start values. kRotary:
// none, queries and keys are rotated. kNone: no table. kSinesFirst: fixed, not in folders, with all
// sines before the cosines.
enum class Positions : uint8_t {
  kLearned,
  kSinusoidal,
  kSinusoidalStart,
  kRotary,
  kNone,
  kSinesFirst
};

// The layer norms of a block: after each residual sum, or before attention and MLP and once after
// the last block. kBeforeExceptFirst: none before the first attention.
enum class NormPlace : uint8_t { kAfter, kBefore, kBeforeExceptFirst };

// Relative positions of attention: biases by bucket of distances (MPNet), or vectors whose products
// with queries and keys are added to the scores (DeBERTa).
struct RelativeConfig {
  int32_t buckets = 0;   // rows of biases
  int32_t span = 0;      // of vectors; the table has 2 span rows
  int32_t furthest = 0;  // vectors: end of the logarithmic buckets; 0: a bucket per distance
  bool query_terms = false, key_terms = false;  // products with queries ("c2p"), with keys ("p2c")
  bool shared = true;       // the block's layers of queries and keys project the vectors
  bool norm = false;        // layer norm of the vectors
  int32_t convolution = 0;  // size of the convolution over tokens after block 0; 0: none
  ActivationKind convolution_activation = ActivationKind::kTanh;
  bool any() const { return buckets > 0 || span > 0; }
  bool operator==(const RelativeConfig&) const = default;
};

// The embeddings of tokens, the input of block 0.
struct EmbeddingTraits {
  int32_t size = 0;         // 0: hidden; embeddings of another size are projected to hidden
  bool projected = false;   // they are projected even if their size is hidden
  int32_t token_types = 2;  // rows of the table of token types; 0: no table
  float scale = 1;          // factor of the word embeddings
  bool norm = true;         // layer norm of the sum of embeddings
};

struct PositionTraits {
  Positions kind = Positions::kLearned;  // kSinusoidalStart becomes kLearned in folders
  int32_t count = 512;                   // rows of the table, unused ones included
  int32_t offset = 0;                    // first row that is used
  bool after_pad = false;  // pad tokens are not counted, and `offset` is the pad token's id + 1
  float sinusoid_base = 10000;
  std::array<float, 2> rotary_base = {10000, 10000};  // of layers that see all tokens, local ones

  bool has_table() const { return kind != Positions::kRotary && kind != Positions::kNone; }
  bool is_fixed() const { return kind == Positions::kSinusoidal || kind == Positions::kSinesFirst; }
};

struct AttentionTraits {
  bool causal = false;           // tokens see those before them
  bool cross = false;            // blocks attend to the hidden states of an encoder
  int32_t window = 0;            // local layers see window / 2 tokens on each side
  std::vector<bool> local = {};  // [layers] true for local layers; empty: none
  float dropout = 0.1;

  bool is_local(int layer) const { return !local.empty() && local[layer]; }
};

struct MlpTraits {
  ActivationKind activation = ActivationKind::kGelu;
  bool gated = false;  // output(act(first half) * second half of the intermediate layer)
};

struct NormTraits {
  NormPlace place = NormPlace::kAfter;
  bool biases = true;  // of all norms, and of the masked-LM head's dense layer
  float epsilon = 1e-12;
};

// Layers of a group share their blocks (ALBERT).
struct SharingTraits {
  int32_t groups = 0;            // 0: each layer has its own blocks
  int32_t blocks_per_layer = 1;  // Architecture::layers counts all blocks
};

// New weights.
struct InitializerTraits {
  float range = 0.02;           // standard deviation
  bool scaled_outputs = false;  // smaller for layers that add to the residual sum, see InitStddev
};

// The defaults are those of BERT.
struct Architecture {
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0, pad_id = 0;
  EmbeddingTraits embeddings = {};
  PositionTraits positions = {};
  RelativeConfig relative = {};
  AttentionTraits attention = {};
  MlpTraits mlp = {};
  NormTraits norm = {};
  SharingTraits sharing = {};
  InitializerTraits initializer = {};
  bool biases = true;   // of the linear layers of blocks
  float dropout = 0.1;  // of embeddings and of the outputs of attention and MLP

  bool pre_norm() const { return norm.place != NormPlace::kAfter; }
  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return positions.count - positions.offset; }
  int32_t embedding_size() const { return embeddings.size > 0 ? embeddings.size : hidden; }
  bool projects_embeddings() const { return embeddings.projected || embedding_size() != hidden; }
  // Number of blocks with parameters of their own.
  int32_t own_blocks() const {
    return sharing.groups > 0 ? sharing.groups * sharing.blocks_per_layer : layers;
  }
  // Sets pad_id and, with positions.after_pad, positions.offset and positions.count.
  void SetPad(int32_t id) {
    pad_id = id;
    if (!positions.after_pad) return;
    positions.count += id + 1 - positions.offset;
    positions.offset = id + 1;
  }
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ARCHITECTURE_H_
