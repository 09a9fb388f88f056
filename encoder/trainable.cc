#include "encoder/trainable.h"

#include <algorithm>

#include "encoder/modules/lora.h"

namespace cloze {

bool IsTrainable(const Param& param, const ModelConfig& config, const TrainableSpec& spec) {
  const int layer = param.layer;
  switch (spec.part_case()) {
    case TrainableSpec::PART_NOT_SET: return true;
    case TrainableSpec::kHeadOnly: return layer == config.layers || !spec.head_only();
    case TrainableSpec::kLastLayers: return layer >= config.layers - spec.last_layers();
    case TrainableSpec::kLora:
      return layer == config.layers || param.lora() || (layer < 0 && spec.lora().embeddings());
  }
  CLOZE_CHECK(false);
}

absl::Status CheckTrainable(const TrainableSpec& spec, const ModelConfig& config) {
  if (spec.last_layers() > config.layers) {
    return Error(Exit::kSpec, "trainable.last_layers is ", spec.last_layers(), ", the model has ",
        config.layers);
  }
  const auto& targets = spec.lora().targets();
  const bool wide = std::find(targets.begin(), targets.end(), LoraSpec::OUTPUT) != targets.end() &&
                    config.intermediate > kMaxDropoutRow;
  if (wide && spec.lora().dropout() > 0) {
    return Error(Exit::kSpec, "trainable.lora.dropout: the input of OUTPUT has ",
        config.intermediate, " columns, dropout takes at most ", kMaxDropoutRow, "; set it to 0");
  }
  return absl::OkStatus();
}

ParamCount CountParams(const ParamStore& store) {
  ParamCount count;
  for (ParamId id = 0; id < store.size(); ++id) {
    count.all += store.param(id).size();
    if (store.param(id).trainable) count.trained += store.param(id).size();
  }
  return count;
}

}  // namespace cloze
