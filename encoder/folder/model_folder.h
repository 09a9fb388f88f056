// Model folders in Hugging Face's format: config.json and model.safetensors (or its shards).
#ifndef CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_
#define CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/param_store.h"
#include "core/tensor/safetensors.h"
#include "encoder/families/families.h"

namespace cloze {

// Largest JSON file of a folder that is read.
inline constexpr int64_t kMaxConfigBytes = int64_t{64} << 20;
// Reads a JSON file of a folder. Errors of ReadFile and ParseJson.
absl::StatusOr<Json> ReadJson(const std::string& path);

// Returns true if a quantized folder stores the parameter as int8, always as [rows, cols]. A pass
// reads few rows of an embedding table, so storing the table as int8 saves disk space but no time.
bool IsStoredAsInt8(const Param& param, const ModelConfig& config);

// Differences between a folder and a model.
struct LoadReport {
  std::vector<std::string> missing;  // parameters of the head without a tensor; they keep their
                                     // values
  std::vector<std::string> ignored;  // tensors that the model does not use
};

// Weights that LoadWeights does not store as f32 values for inference; the store keeps zeros.
struct DeferredWeights {
  // Receives the word embeddings, whose rows are read on first use, unless the output layer is tied
  // to them.
  LazyRows words;
  // Called for each layer in int8 (Param::int8) with the values [rows, cols] of the matrix `id` and
  // of those adjacent to it.
  std::function<void(ParamId id, ConstMat values)> pack;
};

// Reads config.json of a folder. Errors of ParseConfig; kNoInput if config.json or the weights are
// missing; kMismatch for an adapter, or if the weights are far smaller than the described model, so
// that no memory is reserved for it.
absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder);

// Reads the parameters of `store`, which must be allocated, from F32, F16, BF16, F64 or, with
// scales, I8 tensors, except for those of adapters and those in `except`. Names as in
// CanonicalName; stored copies of tied weights must be equal to them. kMismatch lists all missing
// tensors of the encoder and all tensors with another shape; kData if a value is not finite. After
// an error the values are undefined. `config` may be that of an auxiliary model, whose parameters
// are all missing if the folder has none. `deferred` may be null.
absl::Status LoadWeights(const std::string& folder, const ModelConfig& config, ParamStore* store,
    LoadReport* report, const std::vector<std::string>& except = {},
    DeferredWeights* deferred = nullptr);

// Returns "model.safetensors" or, for an auxiliary model, "model.NAME.safetensors", whose
// description is NAME_config.json. transformers: from_pretrained(FOLDER, variant=NAME, config=...).
std::string WeightsFile(absl::string_view auxiliary = "");

// Writes config.json and model.safetensors (f32, or with config.int8 int8 where IsStoredAsInt8;
// without parameters of adapters) into `folder`, and the same of its auxiliary models;
// creates the folder and replaces each file atomically. kInternal if a value is not finite.
absl::Status SaveWeights(
    const std::string& folder, const ModelConfig& config, const ParamStore& store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_MODEL_FOLDER_H_
