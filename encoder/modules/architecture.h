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

// The defaults are those of BERT.
struct Architecture {
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0;

  // Embeddings. `embedding`: their size; 0: hidden. Others than `hidden` are projected, and with
  // projects_always all. token_types: 0: no table.
  int32_t embedding = 0, token_types = 2;
  float embedding_scale = 1;  // factor of the word embeddings
  bool projects_always = false, embeddings_norm = true;

  // Positions. max_positions: rows of the position table, unused ones included. position_offset:
  // its first row that is used; with positions_after_pad, which counts no pad tokens, pad_id + 1.
  Positions positions = Positions::kLearned;  // kSinusoidalStart becomes kLearned in folders
  int32_t max_positions = 512, position_offset = 0, pad_id = 0;
  bool positions_after_pad = false;
  float sinusoid_base = 10000;
  // Rotary positions: bases of layers that see all tokens, and of local layers.
  std::array<float, 2> rotary_base = {10000, 10000};
  RelativeConfig relative = {};

  // Attention. causal: tokens see those before them. cross_attention: blocks attend to the hidden
  // states of an encoder. Layers of `local` ([layers], or empty: none) see window / 2 tokens on
  // each side.
  bool causal = false, cross_attention = false;
  int32_t window = 0;
  std::vector<bool> local = {};

  // Blocks. gated: output(act(first half) * second half of the intermediate layer). biases: of
  // their linear layers. norm_biases: of all norms and of the masked-LM head's dense layer.
  ActivationKind activation = ActivationKind::kGelu;
  bool gated = false, biases = true, norm_biases = true;
  NormPlace norm = NormPlace::kAfter;
  float norm_epsilon = 1e-12;
  // Layers of a group share their blocks (ALBERT); 0: each has its own. `inner`: blocks of a layer;
  // `layers` counts all blocks.
  int32_t groups = 0, inner = 1;

  float dropout = 0.1, attention_dropout = 0.1;
  // Standard deviation of new weights; with scaled_outputs smaller for layers that add to the
  // residual sum, see InitStddev.
  float initializer_range = 0.02;
  bool scaled_outputs = false;

  bool pre_norm() const { return norm != NormPlace::kAfter; }
  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return max_positions - position_offset; }
  bool has_position_table() const {
    return positions != Positions::kRotary && positions != Positions::kNone;
  }
  bool has_fixed_positions() const {
    return positions == Positions::kSinusoidal || positions == Positions::kSinesFirst;
  }
  bool is_local(int layer) const { return !local.empty() && local[layer]; }
  int32_t embedding_size() const { return embedding > 0 ? embedding : hidden; }
  bool projects_embeddings() const { return projects_always || embedding_size() != hidden; }
  // Number of blocks with parameters of their own.
  int32_t own_blocks() const { return groups > 0 ? groups * inner : layers; }
  // Sets pad_id and, with positions_after_pad, position_offset and max_positions.
  void SetPad(int32_t id) {
    pad_id = id;
    if (!positions_after_pad) return;
    max_positions += id + 1 - position_offset;
    position_offset = id + 1;
  }
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ARCHITECTURE_H_
