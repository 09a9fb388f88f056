// Model folders in Hugging Face's format: config.json and model.safetensors (or its shards).
#ifndef CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_
#define CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/lazy_rows.h"
#include "core/tensor/param_store.h"
#include "encoder/families/families.h"

namespace cloze {

// Differences between a folder and a model.
struct LoadReport {
  std::vector<std::string> initialised;  // parameters of the head that the folder lacks; they keep
                                         // their values
  std::vector<std::string> ignored;      // tensors of the folder that the model does not use
};

// The config of a folder. Errors of ParseConfig; kNoInput when config.json or the weights are
// missing; kMismatch when it holds an adapter, or describes a model far larger than the weights, so
// that nobody reserves memory for it.
absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder);

// Reads every parameter of `store` (allocated, named as Hugging Face names them) from `folder`, as
// F32, F16, BF16 or F64, but for those of adapters and the names in `except`. Names without the
// encoder's prefix and LayerNorm.gamma/beta are understood; stored decoder weights have to equal
// the tied ones. kMismatch lists all tensors of the encoder that are missing and all with another
// shape; kData when a value is not finite. After an error the values are undefined. With `words`
// the table of word embeddings is left to it, unless the output layer needs the whole of it.
absl::Status LoadWeights(const std::string& folder, const ModelConfig& config, ParamStore* store,
    LoadReport* report, const std::vector<std::string>& except = {}, LazyRows* words = nullptr);

// Writes config.json and model.safetensors (f32, without parameters of adapters) into `folder`,
// which is made when missing; each file is replaced whole. kInternal when a value is not finite.
absl::Status SaveWeights(
    const std::string& folder, const ModelConfig& config, const ParamStore& store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_
