#include "encoder/model.h"

#include <algorithm>
#include <cmath>

#include "encoder/model_folder.h"

namespace cloze {

Model::Model(const ModelConfig& config, bool training)
    : config_(config), encoder_(&params_, config), head_(&params_, config, encoder_.word_embeddings()) {
  if (config.positions == EncoderSpec::SINUSOIDAL) params_.Freeze(encoder_.position_embeddings());
  params_.Allocate(training);
  if (config.positions == EncoderSpec::SINUSOIDAL) encoder_.SetSinusoids(&params_, 1);
}

void Model::Initialize(uint64_t seed) {
  for (ParamId id = 0; id < params_.size(); ++id) params_.Initialize(id, seed, config_.initializer_range);
  if (config_.positions == EncoderSpec::SINUSOIDAL) encoder_.SetSinusoids(&params_, 1);
  // A sine's standard deviation is 1 / sqrt(2) of its amplitude.
  if (config_.positions == EncoderSpec::SINUSOIDAL_START) encoder_.SetSinusoids(&params_, std::sqrt(2.0) * config_.initializer_range);
  float* pad = params_.value(encoder_.word_embeddings()).f32(config_.pad_id);
  std::fill(pad, pad + config_.hidden, 0.0f);
}

absl::Status Model::Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh) {
  LoadReport report;
  RETURN_IF_ERROR(LoadWeights(folder, config_, &params_, &report));
  for (const std::string& name : report.initialised) params_.Initialize(params_.Find(name), seed, config_.initializer_range);
  *fresh = report.initialised;
  params_.Changed();
  return absl::OkStatus();
}

}  // namespace cloze
