#include "encoder/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "encoder/folder/model_folder.h"
#include "encoder/trainable.h"

namespace cloze {

Model::Model(const ModelConfig& config, bool training, const TrainableSpec& trainable)
    : Model(config, training, trainable, Memory::kAllocated) {}

std::unique_ptr<Model> Model::LayOut(const ModelConfig& config, const TrainableSpec& trainable) {
  return std::unique_ptr<Model>(new Model(config, true, trainable, Memory::kNone));
}

Model::Model(
    const ModelConfig& config, bool training, const TrainableSpec& trainable, Memory memory)
    : config_(config), encoder_(&params_, config),
      head_(&params_, config, encoder_.word_embeddings()) {
  if (trainable.has_lora()) {
    const auto wanted = [&](const ParamKey& key) { return IsTarget(trainable.lora(), key.role); };
    encoder_.AddLora(&params_, {.spec = trainable.lora(), .wanted = wanted, .adapter = 0});
  }
  for (ParamId id = 0; id < params_.size(); ++id) {
    if (!IsTrainable(params_.param(id), config, trainable)) params_.Freeze(id);
  }
  Allocate(training, memory);
}

Model::Model(const Adapter& adapter)
    : config_(adapter.config()), encoder_(&params_, config_),
      head_(&params_, config_, encoder_.word_embeddings()) {
  encoder_.AddLora(&params_, adapter.Plan(0));
  Allocate(false);
}

Model::Model(const ModelConfig& base, absl::Span<const Adapter> adapters)
    : config_(base), encoder_(&params_, base), head_(&params_, base, encoder_.word_embeddings()) {
  std::vector<ParamId> own(params_.size());
  std::iota(own.begin(), own.end(), 0);
  for (size_t i = 0; i < adapters.size(); ++i) {
    encoder_.AddLora(&params_, adapters[i].Plan(i));
    replaced_.push_back(own);
    for (const Param& p : adapters[i].whole()) {
      const ParamId id = params_.Find(p.name);
      CLOZE_CHECK(id >= 0);
      ParamKey key = p;
      key.adapter = static_cast<int>(i);
      replaced_.back()[id] = p.vector ? params_.AddVector(key, p.cols, p.init)
                                      : params_.AddMatrix(key, p.rows, p.cols);
    }
  }
  Allocate(false);
}

void Model::Allocate(bool training, Memory memory) {
  const bool sinusoids = config_.positions == Positions::kSinusoidal;
  if (sinusoids) params_.Freeze(encoder_.position_embeddings());
  if (memory == Memory::kNone) {
    arena_ = Arena::Counting();
    return params_.LayOut(training);
  }
  params_.Allocate(training);
  if (sinusoids) encoder_.SetSinusoids(&params_, 1);
}

void Model::Initialize(uint64_t seed) {
  for (ParamId id = 0; id < params_.size(); ++id)
    params_.Initialize(id, seed, config_.initializer_range);
  if (config_.positions == Positions::kSinusoidal) encoder_.SetSinusoids(&params_, 1);
  // A sine's standard deviation is 1 / sqrt(2) of its amplitude.
  if (config_.positions == Positions::kSinusoidalStart)
    encoder_.SetSinusoids(&params_, std::sqrt(2.0) * config_.initializer_range);
  if (config_.query_key_start > 0) encoder_.StartKeysAsQueries(&params_, config_.query_key_start);
  float* pad = params_.value(encoder_.word_embeddings()).f32(config_.pad_id);
  std::fill(pad, pad + config_.hidden, 0.0f);
}

absl::Status Model::Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh,
    const std::vector<std::string>& except, ReadWords words) {
  LoadReport report;
  RETURN_IF_ERROR(LoadWeights(folder, config_, &params_, &report, except,
      words == ReadWords::kWhenUsed ? &words_ : nullptr));
  for (ParamId id = 0; id < params_.size(); ++id) {
    if (params_.param(id).lora()) params_.Initialize(id, seed, config_.initializer_range);
  }
  for (const std::string& name : report.missing)
    params_.Initialize(params_.Find(name), seed, config_.initializer_range);
  *fresh = report.missing;
  params_.Changed();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(
    const std::string& base, const std::string& adapter) {
  ASSIGN_OR_RETURN(const ModelConfig config, LoadConfig(base));
  std::vector<std::string> fresh, whole;
  std::unique_ptr<Model> model;
  if (adapter.empty()) {
    model = std::make_unique<Model>(config, false);
    RETURN_IF_ERROR(model->Load(base, 0, &fresh));
  } else {
    ASSIGN_OR_RETURN(const Adapter opened, Adapter::Open(adapter, config));
    for (const Param& param : opened.whole()) whole.push_back(param.name);
    model = std::make_unique<Model>(opened);
    RETURN_IF_ERROR(model->Load(base, 0, &fresh, whole));
    RETURN_IF_ERROR(opened.CheckBase(HashParams(model->params(), config)));
    RETURN_IF_ERROR(opened.Load(0, &model->params()));
  }
  if (fresh.empty()) return model;
  return Error(Exit::kMismatch, QuotePath(adapter.empty() ? base : adapter), ": the weights lack ",
      fresh.front(), adapter.empty() ? "" : ", and so do those of the base");
}

}  // namespace cloze
