// A whole model in memory: parameters, encoder, head, and the memory and caches of its passes.
#ifndef CLOZE_ENCODER_MODEL_H_
#define CLOZE_ENCODER_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "encoder/encoder.h"
#include "encoder/head.h"

namespace cloze {

// Not thread-safe: one pass at a time.
class Model {
 public:
  // Parameters allocated (with gradients if `training`) and zero.
  Model(const ModelConfig& config, bool training);

  // Start values for all parameters, from the seed.
  void Initialize(uint64_t seed);
  // The weights of a folder; what it lacks of the head starts from the seed, and `fresh` names it. Errors as LoadWeights.
  absl::Status Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh);

  const ModelConfig& config() const { return config_; }
  ParamStore& params() { return params_; }
  const ParamStore& params() const { return params_; }
  const Encoder& encoder() const { return encoder_; }
  const Head& head() const { return head_; }
  Arena& arena() { return arena_; }
  Matmul& matmul() { return matmul_; }

  // A pass over `batch`, which must outlive it.
  Step NewStep(const Batch& batch, DType compute, bool training = false, uint64_t seed = 0) {
    return {params_, matmul_, arena_, batch, seed, training, compute};
  }

 private:
  ModelConfig config_;
  ParamStore params_;
  Encoder encoder_;
  Head head_;
  Arena arena_;
  Matmul matmul_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODEL_H_
