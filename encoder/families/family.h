// Model families: names in Hugging Face folders, and config.json.
#ifndef CLOZE_ENCODER_FAMILIES_FAMILY_H_
#define CLOZE_ENCODER_FAMILIES_FAMILY_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "encoder/modules/model_shape.h"
#include "encoder/modules/roles.h"
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
// config.json, and what its models compute. One constant each.
struct Family {
  // A prefix of tensor names in some folders, and the prefix that replaces it.
  struct Alias {
    const char *other, *name;
  };

  // The family in encoder-decoders.
  struct Joined {
    const Family* encoder = nullptr;   // a decoder's encoder; null: none
    const char* class_name = nullptr;  // the class in transformers that has encoder and decoder
    // Encoders and decoders of JoinEncoderDecoder: the family when loaded alone (else null), and a
    // prefix of the parameters' names.
    const Family* standalone = nullptr;
    const char* prefix = "";
    // The decoder of JoinEncoderDecoder may be of this family: in transformers it has the names of
    // encoder_decoder.cc.
    bool can_be_decoder = false;
  };

  const char* model_type;  // in config.json
  const char* classes;     // prefix of class names, for example "Bert"
  const char* prefix;      // prefix of the encoder's parameters, for example "bert."
  Joined joined = {};
  bool transposed = false;  // folders hold the weights of linear layers in blocks as [in, out]
  // The architecture and head traits of the family. Members that config.json or the spec of a new
  // model leave out keep these values, as in transformers. SpecRules in proto/model.proto name the
  // fields of specs whose defaults are these.
  Architecture architecture = {};
  HeadTraits head = {};
  // If a spec can describe new models of this family: the name there. Of two families, the one
  // with the pre_norm of the spec.
  std::optional<EncoderSpec::Architecture> in_spec = {};
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
  // Read and write additional members of config.json; may be null. `read` runs before
  // the common members are read.
  void (*read)(JsonFields& fields, ModelConfig* config) = nullptr;
  void (*write)(const ModelConfig& config, Json* json) = nullptr;

  // Returns the name of a module, or "" if the family has none.
  std::string Name(Role role, int layer, int inner = 0) const;
  // Replaces '@', '#' and '&'.
  std::string Fill(const char* name, int layer, int inner = 0) const;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_FAMILIES_FAMILY_H_
