// Adapter folders as PEFT keeps them: adapter_config.json and adapter_model.safetensors. Ours also
// have the config.json of base and adapter together, for its head and labels.
#ifndef CLOZE_ENCODER_FOLDER_ADAPTER_H_
#define CLOZE_ENCODER_FOLDER_ADAPTER_H_

#include <map>
#include <string>
#include <vector>

#include "core/tensor/safetensors.h"
#include "encoder/families/families.h"
#include "encoder/modules/lora.h"

namespace cloze {

// True if `folder` holds an adapter instead of a model.
bool IsAdapter(const std::string& folder);

// adapter_config.json.
struct AdapterConfig {
  LoraSpec lora;     // without targets: the tensors say which layers have one
  std::string base;  // base_model_name_or_path; may be empty
  std::string task;  // SEQ_CLS, TOKEN_CLS, FEATURE_EXTRACTION ...; may be empty
};
// kNoInput when it is missing, kData when it is wrong, kMismatch for kinds of adapters that cannot
// be computed (DoRA, trained biases ...).
absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder);

// The folder of the base that an adapter folder names. kNoInput when it is not there.
absl::StatusOr<std::string> BaseOf(const std::string& folder);

// A hash of each parameter of the model itself below the head, by name.
using ParamHashes = std::map<std::string, uint64_t>;
ParamHashes HashParams(const ParamStore& store, const ModelConfig& config);

// An adapter that fits its base by names and shapes.
class Adapter {
 public:
  // kMismatch names what does not fit a base of this shape. Errors of ReadAdapterConfig and
  // SafetensorsReader::Open.
  static absl::StatusOr<Adapter> Open(const std::string& folder, const ModelConfig& base);

  const std::string& folder() const { return folder_; }
  // Base and adapter together: the base's config with the adapter's head and labels.
  const ModelConfig& config() const { return config_; }
  // The plan of its LoRA layers, under a number by which a Pass selects them.
  LoraPlan Plan(int number) const;
  // Parameters that it holds whole: the head, maybe the embeddings.
  const std::vector<Param>& whole() const { return whole_; }

  // kMismatch when the file says that it was trained on other values than `base`.
  absl::Status CheckBase(const ParamHashes& base) const;
  // Reads all its tensors into the parameters of adapter `number` in the store, or, where there are
  // none, into those of the model itself.
  absl::Status Load(int number, ParamStore* store) const;

 private:
  Adapter(std::string folder, AdapterConfig file, SafetensorsReader reader)
      : folder_(std::move(folder)), file_(std::move(file)), reader_(std::move(reader)) {}
  absl::Status JoinConfig(const ModelConfig& base);
  absl::Status JoinForeign(const ModelConfig& base);
  absl::Status MapTensors();
  absl::Status Match();
  absl::Status Wrong(absl::string_view what) const {
    return Error(Exit::kMismatch, absl::StrCat(QuotePath(folder_), ": ", what));
  }

  std::string folder_;
  AdapterConfig file_;
  SafetensorsReader reader_;
  ModelConfig config_;
  std::map<std::string, const TensorInfo*> tensors_;  // by our parameters' names
  std::vector<Param> whole_;
  std::vector<std::pair<Role, int>> lora_;  // role and layer of each linear layer with LoRA
};

// Writes every trained parameter of `store` as an adapter of the model in `base`; files are
// replaced whole. kInternal when a value is not finite.
absl::Status SaveAdapter(const std::string& folder, const ModelConfig& config, const LoraSpec& spec,
    const std::string& base, const ParamStore& store);

// W += s B A for each LoRA of a store with one adapter. Keeps A and B.
void MergeLora(const LoraSpec& spec, ParamStore* store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_ADAPTER_H_
