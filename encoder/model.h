// A model in memory: parameters, backbone, head, arena and packed weights.
#ifndef CLOZE_ENCODER_MODEL_H_
#define CLOZE_ENCODER_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/adapter.h"

namespace cloze {

// Returns kSpec if `spec` names layers that the model lacks or a LoRA that it cannot have
// (encoder-decoders; dropout on rows above kMaxDropoutRow).
absl::Status CheckTrainable(const TrainableSpec& spec, const ModelConfig& config);

// Forward of `backbone` and `head`, and backward if scale != 0, which adds gradients times scale.
// Returns the sum of `loss` over the targets. Runs only forward unless pass.training is true.
LossSum TrainingPass(const Backbone& backbone, const Head& head, const Pass& pass, float scale,
    Head::LossFunction loss);

// Parameter counts of a model.
struct ParamCount {
  int64_t all = 0, trained = 0;
  int64_t operands = 0;  // trained ones that only matrix products read: Param::matmul_only
};
ParamCount CountParams(const ParamStore& store);

// The values that Load reads.
enum class LoadMode {
  kAll,  // all values
  // All but the word embeddings, of which each row is read when it is used, and the layers of
  // UseInt8(), which are packed at once; their f32 values stay 0.
  kPasses
};

// Not thread-safe: one pass at a time.
class Model {
 public:
  // kNone: no memory for parameters and passes, for dry runs (core/ops/profile.h).
  enum class Memory { kAllocated, kNone };

  // Allocates parameters, set to zero, and if `training` gradients of the trainable ones.
  Model(const ModelConfig& config, bool training, const TrainableSpec& trainable = TrainableSpec(),
      Memory memory = Memory::kAllocated);
  // Creates the model of an adapter and its base, for inference.
  explicit Model(const Adapter& adapter);
  // Creates a base with several adapters, for inference; each pass selects one by number.
  Model(const ModelConfig& base, absl::Span<const Adapter> adapters);

  // Initializes all parameters.
  void Initialize(uint64_t seed);
  // Loads the weights of a folder. Initializes parameters of the head that it lacks, which are
  // added to `fresh`, and LoRAs. Parameters in `except` keep their values. Errors of LoadWeights.
  absl::Status Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh,
      const std::vector<std::string>& except = {}, LoadMode mode = LoadMode::kAll);
  // Reads the embeddings of `ids` (< vocab), if Load for passes has not read them yet. Errors of
  // LazyRows::Read.
  absl::Status ReadEmbeddings(absl::Span<const int32_t> ids) { return words_.Read(ids); }
  // Reads and returns all word embeddings [vocab, embedding]. Errors of LazyRows::Read.
  absl::StatusOr<ConstMat> WordEmbeddings() {
    RETURN_IF_ERROR(words_.ReadAll());
    return params_.value(backbone_.word_embeddings());
  }

  // From now on passes multiply the layers of IsInt8Layer, or those of them that are `wanted`, in
  // int8, and so does the attention of blocks whose queries, keys and values they are (see
  // AttentionShape::int8). For inference.
  void UseInt8(absl::FunctionRef<bool(const Param&)> wanted = [](const Param&) { return true; });

  const ModelConfig& config() const { return config_; }
  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  const Backbone& backbone() const { return backbone_; }
  const Head& head() const { return head_; }
  // A further model whose parameters are in the store of this one.
  struct Auxiliary {
    Backbone backbone;
    Head head;
  };
  // Returns the models of ModelConfig::training.auxiliary, in its order.
  const std::vector<Auxiliary>& auxiliary() const { return auxiliary_; }
  Arena& arena() { return arena_; }
  Matmul& matmul() { return matmul_; }

  // Returns the parameter that an adapter uses instead of `id`.
  ParamId Replaced(int adapter, ParamId id) const { return replaced_[adapter][id]; }

  // Creates a pass over `batch`, which must outlive it. `adapter`: number of the
  // adapter whose parameters are used (0: the only one; ignored without adapters); -1: the base
  // alone.
  Pass NewPass(const Batch& batch, DType compute, bool training = false, uint64_t seed = 0,
      int adapter = 0) {
    const bool several = adapter >= 0 && !replaced_.empty();
    return {params_, matmul_, arena_, batch, seed, training, compute, adapter,
        several ? &replaced_[adapter] : nullptr};
  }

 private:
  explicit Model(const ModelConfig& config);  // without memory
  void Allocate(bool training, Memory memory = Memory::kAllocated);

  ModelConfig config_;
  ParamStore params_;
  Backbone backbone_;
  Head head_;
  std::vector<Auxiliary> auxiliary_;
  std::vector<std::vector<ParamId>> replaced_;  // [adapters][parameters of the base]
  bool int8_ = false;                           // some products are computed in int8
  LazyRows words_;
  Arena arena_;
  Matmul matmul_;
};

// Loads an encoder-decoder of JoinEncoderDecoder from the folders of its encoder and its decoder.
// Initializes the parameters that neither folder has: the attention to the encoder and, without a
// masked-LM head, the decoder's head. Appends their names to *fresh, one for all of the attention.
// Errors of LoadConfig and Model::Load.
absl::Status LoadEncoderAndDecoder(const std::string& encoder, const std::string& decoder,
    uint64_t seed, Model* model, std::vector<std::string>* fresh);

// Loads a model for inference from the folder `base` and the adapter in the folder `adapter` (may
// be empty). kMismatch if the weights lack a part of the head.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(
    const std::string& base, const std::string& adapter);

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODEL_H_
