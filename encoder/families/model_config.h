// The description of a model: its shape, its family, and what its folder says besides.
#ifndef CLOZE_ENCODER_FAMILIES_MODEL_CONFIG_H_
#define CLOZE_ENCODER_FAMILIES_MODEL_CONFIG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "encoder/families/family.h"
#include "encoder/modules/backbone.h"
#include "encoder/modules/head.h"

namespace cloze {

// Settings of generation_config.json, for decoders, that `cloze generate` has no option for. They
// mean what they do in transformers. An id of -1: not set.
struct GenerationConfig {
  int32_t start_id = -1;         // before the first token
  int32_t forced_first_id = -1;  // the first token
  int32_t forced_last_id = -1;   // the last token where length ends generation
  std::vector<int32_t> banned;   // tokens that are never generated
  // The end token is not generated before so many tokens: in all; after the prompt.
  int32_t min_length = 0, min_new_tokens = 0;
  int32_t no_repeat_ngram = 0;  // no sequence of so many tokens occurs twice; 0: any
};

// Settings that only training uses; folders do not store them.
struct TrainingConfig {
  float query_key_start = 0;  // see EncoderSpec
  // Models that a task trains together with this one; their parameters are in the same store.
  std::vector<ModelConfig> auxiliary;
  // Name of an auxiliary model: it begins the names of its parameters, with a dot, and is part of
  // the names of its files.
  std::string name;
  bool shares_embeddings = false;  // an auxiliary model uses the embeddings of the main one
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
struct EncoderDecoderConfig {
  // The encoder of an encoder-decoder, whose decoder this describes. They share the word
  // embeddings, except in those of JoinEncoderDecoder. Null: none.
  std::shared_ptr<const ModelConfig> encoder;
  bool is_encoder = false;  // this is the encoder of an encoder-decoder
  GenerationConfig generation;
};

// Ids of special tokens.
struct TokenIdConfig {
  int32_t end_id = -1;  // the token that ends a text, of decoders; -1: none
  // bos_token_id, eos_token_id, cls_token_id and sep_token_id, if config.json has them; -1: null.
  std::map<std::string, int32_t> special_ids;
};

struct ModelConfig : ModelShape, QuantizedLayers, EncoderDecoderConfig, TokenIdConfig {
  ModelConfig() = default;
  // A model of this family without sizes.
  explicit ModelConfig(const Family& family)
      : ModelShape{family.architecture, family.head}, family(&family) {}

  const Family* family = nullptr;
  // Members of config.json that the task reads and writes: problem_type, which transformers has for
  // classifiers, and the task's members of "cloze".
  std::string problem_type;
  Json task_fields = Json::object();
  TrainingConfig training;
  // The tied head multiplies by the module of the word embeddings, so that a copy which PEFT makes
  // of that module is the output matrix, too; PEFT has other names for the modules of the head.
  bool head_calls_embeddings = false;

  // True if the family names the module.
  bool has(Role role) const { return !family->Name(role, 0).empty(); }
  // Returns the key of a module. `layer`: see ParamKey. The key of a shared block has the last
  // layer that uses it.
  ParamKey Key(Role role, int layer) const;
  // True if this is an auxiliary model that uses the parameters of the main one for this role.
  bool shares(Role role) const;
};

// Return modules of `config` after adding their parameters to `store`. NewEncoder ignores
// config.encoder.
Encoder NewEncoder(ParamStore* store, const ModelConfig& config);
Backbone NewBackbone(ParamStore* store, const ModelConfig& config);
Head NewHead(ParamStore* store, const ModelConfig& config, ParamId word_embeddings);

// True if `param` is a weight that passes multiply in int8: of a linear layer of a block, except
// for those of config.unquantized.
bool IsInt8Layer(const Param& param, const ModelConfig& config);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FAMILIES_MODEL_CONFIG_H_
