#include "encoder/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "encoder/folder/model_folder.h"
#include "proto/spec.h"

namespace cloze {
namespace {

bool IsTrainable(const Param& param, const ModelConfig& config, const TrainableSpec& spec) {
  const bool head = param.layer == config.layers;
  switch (spec.part_case()) {
    case TrainableSpec::PART_NOT_SET: return true;
    case TrainableSpec::kHeadOnly: return head || TrainsAll(spec);
    case TrainableSpec::kLastLayers: return param.layer >= config.layers - spec.last_layers();
    case TrainableSpec::kLora:
      return head || IsLora(param) || (param.layer < 0 && spec.lora().embeddings());
  }
  CLOZE_CHECK(false);
}

ParamId PositionTable(const ModelConfig& config, const ParamStore& store) {
  const Role role = Role::kPositionEmbeddings;
  return FindWeight(store, role, config.Key(role, -1).layer);
}

void FreezeFixedPositions(const ModelConfig& config, ParamStore* store) {
  if (config.encoder != nullptr) FreezeFixedPositions(*config.encoder, store);
  if (config.positions.is_fixed()) store->Edit(PositionTable(config, *store)).trainable = false;
}

// Fills position tables that are sinusoids, or start as such: sin (even columns i) and cos (odd i)
// of n / base^(i / hidden), times an amplitude (Bishop & Bishop, eq. 12.25). kSinesFirst: the even
// columns come before the odd ones.
void SetSinusoids(const ModelConfig& config, ParamStore* store) {
  if (config.encoder != nullptr) SetSinusoids(*config.encoder, store);
  const bool fixed = config.positions.is_fixed();
  if (!fixed && config.positions.kind != Positions::kSinusoidalStart) return;
  // A sine's standard deviation is 1 / sqrt(2) of its amplitude.
  const double amplitude = fixed ? 1 : std::sqrt(2.0) * config.initializer.range;
  const bool halves = config.positions.kind == Positions::kSinesFirst;
  const Mat table = store->value(PositionTable(config, *store));
  for (int64_t n = 0; n < table.rows; ++n) {
    for (int64_t i = 0; i < table.cols; ++i) {
      const double angle =
          n / std::pow(double{config.positions.sinusoid_base}, double(i - i % 2) / table.cols);
      table.f32(n)[halves ? i / 2 + i % 2 * (table.cols + 1) / 2 : i] =
          static_cast<float>(amplitude * (i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  store->Changed();
}

// Multiplies the weights of all queries by `gain` and copies them to the keys.
void StartKeysAsQueries(float gain, ParamStore* store) {
  ParamId id = 0;
  const auto next = [&](Role role) {
    const auto is = [&](const Param& p) { return p.role == role && p.kind == ParamKind::kWeight; };
    while (id < store->size() && !is(store->param(id))) ++id;
    return id < store->size();
  };
  while (next(Role::kQuery)) {
    const Mat query = store->value(id);
    CLOZE_CHECK(next(Role::kKey));
    const Mat key = store->value(id);
    for (int64_t i = 0; i < query.rows * query.cols; ++i) key.f32()[i] = query.f32()[i] *= gain;
  }
  store->Changed();
}

// Returns the standard deviation of the initial values of `param`. As in transformers, smaller for
// the layers of ModernBERT and GPT-2 that add to the residual sum.
float InitStddev(const Param& param, const ModelConfig& config) {
  const bool adds = param.role == Role::kAttentionOutput || param.role == Role::kOutput ||
                    param.role == Role::kTransform;
  return config.initializer.scaled_outputs && adds
             ? config.initializer.range / std::sqrt(2.0f * static_cast<float>(config.layers))
             : config.initializer.range;
}

// Returns `config` with an output matrix of its own if that of an adapter may differ from the word
// embeddings.
ModelConfig WithOutput(ModelConfig config, absl::Span<const Adapter> adapters) {
  for (const Adapter& adapter : adapters) config.untied |= adapter.config().untied;
  return config;
}

}  // namespace

LossSum TrainingPass(const Backbone& backbone, const Head& head, const Pass& pass, float scale,
    Head::LossFunction loss) {
  if (!pass.training) return head.Loss(pass, backbone.Infer(pass), 0, {}, loss);
  const Backbone::Saved saved = backbone.Forward(pass);
  const bool trained = backbone.requires_grad(pass);
  const Mat dy = trained ? pass.New(saved.y.rows, saved.y.cols) : Mat();
  const LossSum sum = head.Loss(pass, saved.y, scale, dy, loss);
  if (scale != 0 && trained) backbone.Backward(pass, saved, dy);
  return sum;
}

absl::Status CheckTrainable(const TrainableSpec& spec, const ModelConfig& config) {
  if (spec.has_lora() && config.encoder != nullptr) {
    return Error(Exit::kSpec,
        "trainable.lora: the model is an encoder-decoder: expected head_only, "
        "last_layers or none");
  }
  if (spec.has_lora() && config.head_calls_embeddings && TypeOf(config.head).tied) {
    return Error(Exit::kSpec,
        "trainable.lora: config.json of the model has legacy: false, so PEFT has other names for "
        "the modules of its masked-LM head: expected head_only, last_layers or none");
  }
  if (spec.last_layers() > config.layers) {
    return Error(Exit::kSpec, "trainable.last_layers is ", spec.last_layers(), ", the model has ",
        config.layers);
  }
  const bool wide = absl::c_linear_search(spec.lora().targets(), LoraSpec::OUTPUT) &&
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
    const Param& param = store.param(id);
    count.all += param.size();
    if (param.trainable) count.trained += param.size();
    if (param.trainable && param.matmul_only) count.operands += param.size();
  }
  return count;
}

Model::Model(const ModelConfig& config)
    : config_(config), backbone_(NewBackbone(&params_, config)),
      head_(NewHead(&params_, config, backbone_.word_embeddings())) {
  for (const ModelConfig& auxiliary : config.training.auxiliary) {
    Backbone backbone = NewBackbone(&params_, auxiliary);
    Head head = NewHead(&params_, auxiliary, backbone.word_embeddings());
    auxiliary_.push_back({std::move(backbone), std::move(head)});
  }
}

Model::Model(
    const ModelConfig& config, bool training, const TrainableSpec& trainable, Memory memory)
    : Model(config) {
  if (trainable.has_lora()) {
    const auto wanted = [&](const ParamKey& key) { return IsTarget(trainable.lora(), key.role); };
    backbone_.AddLora(&params_, PlanOf(trainable.lora(), wanted, 0));
  }
  for (ParamId id = 0; id < params_.size(); ++id) {
    if (!IsTrainable(params_.param(id), config, trainable)) params_.Edit(id).trainable = false;
  }
  Allocate(training, memory);
}

Model::Model(const Adapter& adapter) : Model(adapter.config()) {
  backbone_.AddLora(&params_, adapter.Plan(0));
  Allocate(false);
}

Model::Model(const ModelConfig& base, absl::Span<const Adapter> adapters)
    : Model(WithOutput(base, adapters)) {
  std::vector<ParamId> base_ids(params_.size());
  std::iota(base_ids.begin(), base_ids.end(), 0);
  for (size_t i = 0; i < adapters.size(); ++i) {
    backbone_.AddLora(&params_, adapters[i].Plan(i));
    replaced_.push_back(base_ids);
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
  FreezeFixedPositions(config_, &params_);
  if (memory == Memory::kNone) {
    arena_ = Arena::Counting();
    return params_.LayOut(training);
  }
  params_.Allocate(training);
  SetSinusoids(config_, &params_);
}

void Model::Initialize(uint64_t seed) {
  for (ParamId id = 0; id < params_.size(); ++id)
    InitializeParam(id, seed, InitStddev(params_.param(id), config_), &params_);
  SetSinusoids(config_, &params_);
  if (config_.training.query_key_start > 0)
    StartKeysAsQueries(config_.training.query_key_start, &params_);
  std::fill_n(params_.value(backbone_.word_embeddings()).f32(config_.pad_id),
      config_.embedding_size(), 0.0f);
}

absl::Status Model::Load(const std::string& folder, uint64_t seed, std::vector<std::string>* fresh,
    const std::vector<std::string>& except, LoadMode mode) {
  LoadReport report;
  DeferredWeights deferred;
  if (mode == LoadMode::kPasses && int8_) params_.ExpectFewValues();
  deferred.pack = [&](ParamId id, ConstMat values) {
    Mat w = params_.value(id);
    w.rows = values.rows;
    matmul_.Pin({w, 0, true}, values);
  };
  RETURN_IF_ERROR(LoadWeights(
      folder, config_, &params_, &report, except, mode == LoadMode::kAll ? nullptr : &deferred));
  words_ = std::move(deferred.words);
  for (ParamId id = 0; id < params_.size(); ++id) {
    if (IsLora(params_.param(id))) InitializeParam(id, seed, config_.initializer.range, &params_);
  }
  for (const ModelConfig& auxiliary : config_.training.auxiliary) {
    LoadReport further;
    RETURN_IF_ERROR(LoadWeights(folder, auxiliary, &params_, &further, except));
    report.missing.insert(report.missing.end(), further.missing.begin(), further.missing.end());
  }
  for (const std::string& name : report.missing) {
    const ParamId id = params_.Find(name);
    InitializeParam(id, seed, InitStddev(params_.param(id), config_), &params_);
  }
  *fresh = report.missing;
  params_.Changed();
  return absl::OkStatus();
}

absl::Status LoadEncoderAndDecoder(const std::string& encoder, const std::string& decoder,
    uint64_t seed, Model* model, std::vector<std::string>* fresh) {
  ParamStore& params = model->params();
  const ModelConfig& joined = model->config();
  std::vector<bool> known(params.size());
  for (const bool decodes : {false, true}) {
    const std::string& folder = decodes ? decoder : encoder;
    ASSIGN_OR_RETURN(ModelConfig config, LoadConfig(folder));
    config.head = decodes ? HeadKind::kMaskedLm : HeadKind::kNone;
    config.pooler = config.crf = false;
    Model part(config, /*training=*/false);
    std::vector<std::string> missing;
    RETURN_IF_ERROR(part.Load(folder, seed, &missing));
    const Family& family = decodes ? *joined.family : *joined.encoder->family;
    for (ParamId from = 0; from < part.params().size(); ++from) {
      const std::string& name = part.params().param(from).name;
      const ParamId to = params.Find(absl::StrCat(family.joined.prefix,
          decodes ? name : std::string(absl::StripPrefix(name, config.family->prefix))));
      CLOZE_CHECK(to >= 0);
      if (absl::c_linear_search(missing, name)) continue;
      const ConstMat values = part.params().value(from);
      absl::c_copy(absl::MakeSpan(values.f32(), params.param(to).size()), params.value(to).f32());
      known[to] = true;
    }
  }
  bool crosses = false;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (known[id]) continue;
    InitializeParam(id, seed, joined.initializer.range, &params);
    const bool cross = params.param(id).layer < joined.layers;
    if (!cross || !std::exchange(crosses, true))
      fresh->push_back(cross ? "the decoder's attention to the encoder" : params.param(id).name);
  }
  params.Changed();
  return absl::OkStatus();
}

void Model::UseInt8(absl::FunctionRef<bool(const Param&)> wanted) {
  int8_ = true;
  for (ParamId id = 0; id < params_.size(); ++id) {
    const Param& param = params_.param(id);
    params_.Edit(id).int8 = IsInt8Layer(param, config_) && wanted(param);
  }
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
    RETURN_IF_ERROR(opened.CheckBase(HashBase(model->params(), config)));
    RETURN_IF_ERROR(opened.Load(0, &model->params()));
  }
  if (fresh.empty()) return model;
  return Error(Exit::kMismatch, QuotePath(adapter.empty() ? base : adapter), ": the weights lack ",
      fresh.front(), adapter.empty() ? "" : ", and so do those of the base");
}

}  // namespace cloze
