// Adapter folders in PEFT's format: adapter_config.json and adapter_model.safetensors. Folders
// written by Cloze also have a config.json with head and labels.
#ifndef CLOZE_ENCODER_FOLDER_ADAPTER_H_
#define CLOZE_ENCODER_FOLDER_ADAPTER_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/tensor/safetensors.h"
#include "encoder/families/families.h"
#include "proto/task.pb.h"

namespace cloze {

inline constexpr char kAdapterConfig[] = "adapter_config.json";

// True if `folder` holds an adapter instead of a model.
bool IsAdapter(const std::string& folder);

// Returns the plan of LoRAs as `spec` describes them.
LoraPlan PlanOf(
    const LoraSpec& spec, std::function<bool(const ParamKey& module)> wanted, int adapter);
// True if modules with this role get a LoRA; by default queries and values.
bool IsTarget(const LoraSpec& spec, Role role);

// The content of adapter_config.json.
struct AdapterConfig {
  LoraSpec lora;                     // without targets, which follow from the tensors
  std::string base;                  // base_model_name_or_path; may be empty
  std::string task;                  // SEQ_CLS, TOKEN_CLS, FEATURE_EXTRACTION ...; may be empty
  std::vector<std::string> saved;    // modules_to_save: ends of the names of modules with a copy
  std::vector<std::string> targets;  // target_modules: ends of the names of those with a LoRA; may
                                     // be empty where it is a pattern
  bool ties_copies = false;          // ensure_weight_tying: tied modules share their copies
};
// Reads adapter_config.json. kNoInput if it is missing, kData if it is malformed, kMismatch for
// members and values that are not in the tables of adapter_config.cc.
absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder);

// Returns the folder of the base that an adapter names relative to its own folder, as "../base".
// kNoInput if it does not exist or has an absolute name.
absl::StatusOr<std::string> BaseOf(const std::string& folder);

// Returns `given` or, if it is empty, BaseOf(folder); `folder` itself if it holds no adapter.
absl::StatusOr<std::string> BaseFolder(const std::string& folder, const std::string& given = "");

// Hashes of the parameters of an encoder, by name.
using ParamHashes = std::map<std::string, uint64_t>;
ParamHashes HashParams(const ParamStore& store, const ModelConfig& config);
// Returns the hashes of a base by which its adapters recognise it: for a quantized folder those
// before quantization; empty if the folder does not record them.
ParamHashes HashBase(const ParamStore& store, const ModelConfig& config);

// An opened adapter whose names and shapes fit its base.
class Adapter {
 public:
  // kMismatch, with the tensor's name, if it does not fit the base. Errors of ReadAdapterConfig and
  // SafetensorsReader::Open.
  static absl::StatusOr<Adapter> Open(const std::string& folder, const ModelConfig& base);

  const std::string& folder() const { return folder_; }
  // The config of the base with the head and labels of the adapter. Untied if the adapter replaces
  // the word embeddings or the output matrix of a tied head.
  const ModelConfig& config() const { return config_; }
  // Returns the plan of its LoRA layers, as adapter `number` of a model.
  LoraPlan Plan(int number) const;
  // The parameters that it replaces: the head and possibly the embeddings.
  const std::vector<Param>& whole() const { return whole_; }

  // kMismatch if the adapter was trained on a base with other values. `base`: of HashBase.
  absl::Status CheckBase(const ParamHashes& base) const;
  // Reads all tensors into the parameters of adapter `number`, or of the model where the adapter
  // has none.
  absl::Status Load(int number, ParamStore* store) const;

 private:
  Adapter(std::string folder, AdapterConfig file, SafetensorsReader reader)
      : folder_(std::move(folder)), file_(std::move(file)), reader_(std::move(reader)) {}
  absl::Status JoinConfig(const ModelConfig& base);
  absl::Status JoinForeign(const ModelConfig& base);
  absl::Status MapTensors();
  bool Saves(const ParamKey& module) const;
  absl::Status MapOutput();
  absl::Status Match();
  template <typename... Parts>
  absl::Status Wrong(const Parts&... what) const {
    return Error(Exit::kMismatch, QuotePath(folder_), ": ", what...);
  }

  std::string folder_;
  AdapterConfig file_;
  SafetensorsReader reader_;
  ModelConfig config_;
  std::map<std::string, const TensorInfo*> tensors_;  // by our parameters' names
  std::vector<Param> whole_;
  std::set<std::pair<Role, int>> lora_;  // role and layer of each linear layer with LoRA
};

// Writes all trainable parameters of `store` as an adapter of the model in `base`, a path relative
// to the adapter's final folder (RelativePath); replaces files atomically. kInternal if a value is
// not finite.
absl::Status SaveAdapter(const std::string& folder, const ModelConfig& config, const LoraSpec& spec,
    const std::string& base, const ParamStore& store);

// Writes the adapter_config.json of the adapter in `from` into `folder`, changed so that it names
// the same base when the files of `folder` have been moved to the folder `home`.
absl::Status MoveBase(const std::string& from, const std::string& home, const std::string& folder);

// Adds s B A to W for each LoRA of a store with one adapter. Keeps A and B.
void MergeLora(const LoraSpec& spec, ParamStore* store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_ADAPTER_H_
