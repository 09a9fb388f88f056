// A model family: the names that transformers gives to its parameters, classes and members of
// config.json, and the differences of its forward pass.
#ifndef CLOZE_ENCODER_MODULES_FAMILY_H_
#define CLOZE_ENCODER_MODULES_FAMILY_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "core/ops/activation.h"
#include "core/tensor/param_store.h"

namespace cloze {

struct ModelConfig;

// Name of a module; '@' is replaced with the family's prefix, '#' with the block's number.
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
  const char* token_types = "type_vocab_size";
  const char* activation = "hidden_act";
  const char* norm_epsilon = "layer_norm_eps";
  const char* dropout = "hidden_dropout_prob";
  const char* attention_dropout = "attention_probs_dropout_prob";
  const char* classifier_dropout = "classifier_dropout";
};

// One constant per family, in encoder/families.
struct Family {
  const char* model_type;  // in config.json
  const char* classes;     // prefix of class names, for example "Bert"
  const char* prefix;      // prefix of the encoder's parameters, for example "bert."
  bool pre_norm = false;
  bool positions_after_pad = false;  // positions start at pad_id + 1 instead of 0
  bool dropout_before_pooler = false;
  bool sequence_dropout_only = false;  // only sequence classifiers use classifier_dropout
  ActivationKind pooler_activation = ActivationKind::kTanh;
  std::optional<ActivationKind> transform_activation = {};  // masked-LM head; null: the encoder's
  ConfigKeys keys = {};
  absl::Span<const RoleName> names[3] = {};  // the first entry of a role is used
  // Read and write additional members of config.json; may be null. `read` runs before the common
  // members are read.
  void (*read)(JsonFields& fields, ModelConfig* config) = nullptr;
  void (*write)(const ModelConfig& config, Json* json) = nullptr;

  // Returns the name of a module, or "" if the family has none.
  std::string Name(Role role, int layer) const;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_FAMILY_H_
