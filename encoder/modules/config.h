// The description of a model: its family, its head and its sizes.
#ifndef CLOZE_ENCODER_MODULES_CONFIG_H_
#define CLOZE_ENCODER_MODULES_CONFIG_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "core/ops/activation.h"
#include "core/tensor/param_store.h"
#include "proto/model.pb.h"

namespace cloze {

struct ModelConfig;

// Name of a module; '@' is replaced with the family's prefix, '#' with the number of
// the block or, in models that share blocks, of its group, and '&' with its number in the group.
struct RoleName {
  Role role;
  const char* name;
};

// Names of members of config.json. Null: the family has no such member and uses the default of
// ModelConfig.
struct ConfigKeys {
  const char* hidden = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* intermediate = "intermediate_size";
  const char* positions = "max_position_embeddings";
  const char* token_types = "type_vocab_size";
  const char* activation = "hidden_act";
  const char* norm_epsilon = "layer_norm_eps";
  const char* dropout = "hidden_dropout_prob";
  const char* attention_dropout = "attention_probs_dropout_prob";
  const char* classifier_dropout = "classifier_dropout";
  const char* embedding = nullptr;
  const char* groups = nullptr;
  const char* inner = nullptr;
};

// A model family: the names that transformers gives to its parameters, classes and members of
// config.json, and the differences of its forward pass. One constant each, in encoder/families.
struct Family {
  // A prefix of tensor names in some folders, and the prefix that replaces it.
  struct Alias {
    const char *other, *name;
  };

  const char* model_type;  // in config.json
  const char* classes;     // prefix of class names, for example "Bert"
  const char* prefix;      // prefix of the encoder's parameters, for example "bert."
  // A decoder: tokens see those before them; its head is kCausalLm or, with an encoder,
  // kSequenceToSequence.
  bool causal = false;
  const Family* source = nullptr;      // family of its encoder; null: none
  const char* source_class = nullptr;  // the class in transformers that has encoder and decoder
  // For a half of a pair (see PairOf): the family of the half as a model of its own (null: not a
  // half), and the prefix of its parameter names in the folder of the pair.
  const Family* plain = nullptr;
  const char* half = "";
  // The decoder of a pair may be of this family: in transformers it has the names of
  // encoder_decoder.cc.
  bool decodes_in_pairs = false;
  bool fixed_bias = false;  // the bias of the logits is a row that is not trained
  bool transposed = false;  // folders hold the weights of linear layers as [in, out]
  bool pre_norm = false;
  bool first_norm = true;    // pre-norm: there is a norm before the first attention
  bool gated = false;        // MLP: output(act(first half) * second half of the intermediate layer)
  bool biases = true;        // of the linear layers in blocks
  bool other_biases = true;  // of the norms and the masked-LM head's dense layer
  bool scaled_outputs = false;       // see Deviation in encoder/model.cc
  bool transform_always = false;     // all heads begin with the masked-LM head's transform
  bool positions_after_pad = false;  // positions start at pad_id + 1 instead of 0
  bool dropout_before_pooler = false;
  bool projects_always = false;        // projects embeddings of size `hidden`, too
  bool sequence_dropout_only = false;  // only sequence classifiers use classifier_dropout
  ActivationKind pooler_activation = ActivationKind::kTanh;
  std::optional<ActivationKind> transform_activation = {};  // masked-LM head; null: the encoder's
  ConfigKeys keys = {};
  absl::Span<const RoleName> names[3] = {};  // the first entry of a role is used
  absl::Span<const Alias> aliases = {};
  // For folders in another layout: pairs (part of a tensor name there, ours), pairs (member of
  // config.json there, ours), and the name, with '@' and '#', of one tensor that holds queries,
  // keys and values ("": none).
  absl::Span<const std::pair<const char*, const char*>> old_names = {}, old_keys = {};
  const char* query_key_value = "";
  // The members of config.json that `read` reads, and those that cannot change a result.
  absl::Span<const absl::string_view> members = {};
  // Names, with '@', of tensors that hold the word embeddings again; folders may have them.
  absl::Span<const char* const> word_embedding_copies = {};
  // Sets the values of members that config.json and specs of new models leave out, as transformers
  // does, where they differ from those of ModelConfig. May be null.
  void (*defaults)(ModelConfig* config) = nullptr;
  // Of families whose new models a spec can describe: the architecture there, and what follows from
  // the spec in this family alone (may be null). `create` runs after `defaults`, on a description
  // with the sizes of the spec; then come the values that the spec sets.
  std::optional<EncoderSpec::Architecture> architecture = {};
  void (*create)(const EncoderSpec& spec, ModelConfig* config) = nullptr;
  // Read and write additional members of config.json; may be null. `read` runs after `defaults` and
  // before the common members are read.
  void (*read)(JsonFields& fields, ModelConfig* config) = nullptr;
  void (*write)(const ModelConfig& config, Json* json) = nullptr;

  // Returns the name of a module, or "" if the family has none.
  std::string Name(Role role, int layer, int inner = 0) const;
  // Replaces '@', '#' and '&'.
  std::string Fill(const char* name, int layer, int inner = 0) const;
};

enum class HeadKind : uint8_t {
  kNone,
  kMaskedLm,
  kSequenceClassification,
  kTokenTagging,
  kQuestionAnswering,
  kReplacedTokens,     // ELECTRA's discriminator
  kCausalLm,           // the next token, of decoders
  kSequenceToSequence  // the next token, of decoders with an encoder
};

struct HeadType {
  HeadKind kind;
  const char* class_suffix;    // of the class in transformers, after the family's name
  const char* peft_task = "";  // task_type of adapters; may be empty
  // At most one is set. `tied`: a logit per word of the vocabulary, with the word embeddings as
  // output matrix. `labelled`: a logit per label, after dropout. `outputs`: this many logits.
  bool tied = false, labelled = false;
  int outputs = 0;
  bool per_text = false;    // one row of logits for each text; otherwise one for each target
  bool pooler = false;      // the class in transformers has a dense layer before the output layer
  const char* output = "";  // module name of the output layer without pooler; empty if tied
};

// All types, in the order of HeadKind.
absl::Span<const HeadType> HeadTypes();
const HeadType& TypeOf(HeadKind kind);

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

// How decoders with an encoder begin and end, as in transformers' generation_config.json. -1: none.
struct GenerationConfig {
  int32_t start_id = -1;         // before the first token
  int32_t forced_first_id = -1;  // the first token
  int32_t forced_last_id = -1;   // the last token where length ends generation
  std::vector<int32_t> banned;   // tokens that are never generated
};

// Settings that only training uses; folders do not store them.
struct TrainingConfig {
  float query_key_start = 0;  // see EncoderSpec
  // At most one: the masked-LM model that replaces tokens; this model learns to find them. Its
  // parameters are in the same store.
  std::vector<ModelConfig> generator;
  // Of a generator: prefix of the names of its parameters; true if it uses its model's embeddings.
  const char* part = "";
  bool shares_embeddings = false;
};

// Quantization of a folder. int8: linear layers of the blocks have int8 weights.
struct QuantizedLayers {
  bool int8 = false;
  std::vector<std::string> unquantized;  // names of modules without int8 weights
  // Hashes of the parameters before they were quantized (HashParams), to recognise adapters for
  // them. Empty: unknown.
  std::map<std::string, uint64_t> original;
};

// Settings of encoder-decoders.
struct PairConfig {
  float embedding_scale = 1;  // factor of the word embeddings
  // Of a decoder, at most one: its encoder. They share the word embeddings, except in pairs
  // (PairOf).
  std::vector<ModelConfig> source;
  bool is_source = false;
  GenerationConfig generation;
};

// Ids of special tokens.
struct TokenIdConfig {
  int32_t pad_id = 0;
  int32_t end_id = -1;  // the token that ends a text, of decoders; -1: none
  // bos_token_id, eos_token_id, cls_token_id and sep_token_id, if config.json has them; -1: null.
  std::map<std::string, int32_t> special_ids;
};

struct ModelConfig : QuantizedLayers, PairConfig, TokenIdConfig {
  const Family* family = nullptr;
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0;
  int32_t embedding = 0;    // size of the embeddings; 0: hidden
  int32_t groups = 0;       // layers of one group share their blocks (ALBERT); 0: each has its own
  int32_t inner = 1;        // blocks of a layer; `layers` counts all blocks
  int32_t token_types = 2;  // 0: no table
  int32_t max_positions = 512;                // rows of the position table, unused ones included
  int32_t position_offset = 0;                // first row of the position table that is used
  Positions positions = Positions::kLearned;  // kSinusoidalStart becomes kLearned in folders
  ActivationKind activation = ActivationKind::kGelu;
  float sinusoid_base = 10000, dropout = 0.1, attention_dropout = 0.1, norm_epsilon = 1e-12,
        initializer_range = 0.02;
  // Rotary positions: bases of layers that see all tokens, and of local layers.
  std::array<float, 2> rotary_base = {10000, 10000};
  RelativeConfig relative;
  int32_t window = 0;             // local layers see window / 2 tokens on each side
  std::vector<bool> local;        // [layers] the local layers; or empty: none
  bool mean_pooling = false;      // sequence classifiers read the mean of the hidden states
  float classifier_dropout = -1;  // < 0: same as `dropout`
  HeadKind head = HeadKind::kNone;
  bool pooler = false;  // the head has a dense layer before its output layer
  bool crf = false;     // the head has a CRF over the labels
  bool untied = false;  // a `tied` head has an output matrix of its own, not the word embeddings
  std::vector<std::string> labels;  // by id; of a regression, the name of the number
  // Members of config.json that the task reads and writes: problem_type, which transformers has for
  // classifiers, and the task's members of "cloze".
  std::string problem_type;
  Json task_fields = Json::object();
  TrainingConfig training;

  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return max_positions - position_offset; }
  int64_t logits() const;      // of a row of the head; 0 without a head
  float head_dropout() const;  // before the output layer
  bool pre_norm() const { return family->pre_norm; }
  // True if the model has the module.
  bool has(Role role) const { return !family->Name(role, 0).empty(); }
  bool has_position_table() const {
    return positions != Positions::kRotary && positions != Positions::kNone;
  }
  bool has_fixed_positions() const {
    return positions == Positions::kSinusoidal || positions == Positions::kSinesFirst;
  }
  bool is_local(int layer) const { return !local.empty() && local[layer]; }
  int32_t embedding_size() const { return embedding > 0 ? embedding : hidden; }
  bool projects_embeddings() const { return family->projects_always || embedding_size() != hidden; }
  // Number of blocks with parameters of their own.
  int32_t own_blocks() const { return groups > 0 ? groups * inner : layers; }
  // Sets pad_id and, for families with positions_after_pad, position_offset and max_positions.
  void SetPad(int32_t id);
  // Returns the key of a module. `layer`: see ParamKey. The key of a shared block has the last
  // layer that uses it.
  ParamKey Key(Role role, int layer) const;
  // True if this is a generator that uses the parameters of its model for this role.
  bool shares(Role role) const;
};

// True if `param` is a weight that passes multiply in int8: of a linear layer of a block, except
// for those of config.unquantized.
bool IsInt8Layer(const Param& param, const ModelConfig& config);

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_CONFIG_H_
