// A family of models: how transformers names its parameters, its classes and the members of its
// config.json, and what distinguishes its forward pass.
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

// Name of the module with a role: '@' stands for the family's prefix, '#' for the number of the
// block.
struct RoleName {
  Role role;
  const char* name;
};

// Names of members of config.json; null: the family has none, and the default of ModelConfig holds.
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

// One static object for each family, in encoder/families.
struct Family {
  const char* model_type;  // in config.json
  const char* classes;     // first part of class names: "Bert"
  const char* prefix;      // of the encoder's parameters: "bert."
  bool pre_norm = false;
  bool positions_after_pad = false;  // the first row of positions is pad_id + 1 instead of 0
  bool dropout_before_pooler = false;
  bool sequence_dropout_only = false;  // classifier_dropout is for sequence classification alone
  ActivationKind pooler_activation = ActivationKind::kTanh;
  std::optional<ActivationKind> transform_activation = {};  // of masked-LM heads; none: the model's
  ConfigKeys keys = {};
  absl::Span<const RoleName> names[3] = {};  // the first entry of a role holds
  // Members of config.json beyond the common ones; may be null. `read` runs before those.
  void (*read)(JsonFields& fields, ModelConfig* config) = nullptr;
  void (*write)(const ModelConfig& config, Json* json) = nullptr;

  // Name of the role's module; "" if the family has none.
  std::string Name(Role role, int layer) const;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_FAMILY_H_
