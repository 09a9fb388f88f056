// A model in memory: parameters, encoder, head, arena and packed weights.
#ifndef CLOZE_ENCODER_MODEL_H_
#define CLOZE_ENCODER_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/safetensors.h"
#include "encoder/config.h"
#include "encoder/folder/adapter.h"
#include "encoder/modules/encoder.h"
#include "encoder/modules/head.h"

namespace cloze {

// Read the word embeddings of a folder at once, or row by row before the passes that need them.
enum class ReadWords { kNow, kWhenUsed };

// Not thread-safe: one pass at a time.
class Model {
 public:
  // Allocates parameters, set to zero, and if `training` gradients of the trainable ones.
  Model(const ModelConfig& config, bool training, const TrainableSpec& trainable = TrainableSpec());
  // Creates the model of an adapter and its base, for inference.
  explicit Model(const Adapter& adapter);
  // Creates a base with several adapters, for inference; each pass selects one by number.
  Model(const ModelConfig& base, absl::Span<const Adapter> adapters);

  // Creates a model without memory for parameters or passes, for dry runs (core/base/profile.h).
  static std::unique_ptr<Model> LayOut(
      const ModelConfig& config, const TrainableSpec& trainable = TrainableSpec());

  // Initializes all parameters.
  void Initialize(uint64_t seed);
  // Loads the weights of a folder. Initializes parameters of the head that it lacks, which are
  // added to `fresh`, and LoRAs. Parameters in `except` keep their values. Errors of LoadWeights.
  absl::Status Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh,
      const std::vector<std::string>& except = {}, ReadWords words = ReadWords::kNow);
  // Read the embeddings of `ids` (< vocab), or all, if Load with kWhenUsed has not read them yet.
  // Errors of LazyRows::Read.
  absl::Status ReadEmbeddings(absl::Span<const int32_t> ids) { return words_.Read(ids); }
  absl::Status ReadAllEmbeddings() { return words_.ReadAll(); }

  const ModelConfig& config() const { return config_; }
  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  const Encoder& encoder() const { return encoder_; }
  const Head& head() const { return head_; }
  Arena& arena() { return arena_; }
  Matmul& matmul() { return matmul_; }

  // Returns the parameter that an adapter uses instead of `id`.
  ParamId Replaced(int adapter, ParamId id) const { return replaced_[adapter][id]; }

  // Creates a pass over `batch`, which must outlive it. adapter -1: the base alone.
  Pass NewPass(const Batch& batch, DType compute, bool training = false, uint64_t seed = 0,
      int adapter = 0) {
    const bool several = adapter >= 0 && !replaced_.empty();
    return {params_, matmul_, arena_, batch, seed, training, compute, adapter,
        several ? &replaced_[adapter] : nullptr};
  }

 private:
  enum class Memory { kAllocated, kNone };
  Model(const ModelConfig& config, bool training, const TrainableSpec& trainable, Memory memory);
  void Allocate(bool training, Memory memory = Memory::kAllocated);

  ModelConfig config_;
  ParamStore params_;
  Encoder encoder_;
  Head head_;
  std::vector<std::vector<ParamId>> replaced_;  // [adapters][parameters of the base]
  LazyRows words_;
  Arena arena_;
  Matmul matmul_;
};

// Loads a model for inference from the folder `base` and the adapter in the folder `adapter` (may
// be empty). kMismatch if the weights lack a part of the head.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(
    const std::string& base, const std::string& adapter);

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODEL_H_
