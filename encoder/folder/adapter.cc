#include "encoder/folder/adapter.h"

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/manifest.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"
#include "encoder/modules/encoder.h"
#include "encoder/modules/head.h"

namespace cloze {
namespace {

constexpr int32_t kMaxRank = 65536;
constexpr double kMaxAlpha = 1e30;
constexpr char kConfigName[] = "adapter_config.json", kWeightsName[] = "adapter_model.safetensors";
constexpr char kPrefix[] = "base_model.model.";
constexpr char kFingerprint[] = "cloze_base";  // metadata: hash of the base's values

// kMismatch for adapters that are not supported.
absl::Status CheckSupported(const Json& json, const std::string& path) {
  const auto wrong = [&](const auto&... what) {
    return Error(Exit::kMismatch, QuotePath(path), ": ", what...);
  };
  const auto quoted = [](const Json& value) { return Quote(value.dump(-1, ' ', true)); };
  const Json &type = JsonMember(json, "peft_type"), &bias = JsonMember(json, "bias");
  if (type != "LORA") return wrong("peft_type: ", quoted(type), ": expected \"LORA\"");
  for (const char* name : {"use_dora", "lora_bias"}) {
    if (JsonMember(json, name) == true) return wrong(name, ": expected false (not supported)");
  }
  const Json& start = JsonMember(json, "init_lora_weights");
  for (const char* name : {"pissa", "olora", "corda", "loftq"}) {
    if (start.is_string() && absl::StartsWithIgnoreCase(start.get<std::string>(), name)) {
      return wrong("init_lora_weights: ", quoted(start), ": expected true: it changes the base ",
          "(PEFT can save such an adapter as one of the unchanged base)");
    }
  }
  for (const char* name : {"rank_pattern", "alpha_pattern"}) {
    if (!JsonMember(json, name).empty())
      return wrong(name, ": expected none (all layers must have the same rank and alpha)");
  }
  if (!bias.is_null() && bias != "none")
    return wrong("bias: ", quoted(bias), ": expected \"none\"");
  return absl::OkStatus();
}

uint64_t Hash(absl::Span<const float> values) {
  uint64_t hash = 0x9E3779B97F4A7C15 + values.size();
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return hash;
}

// Returns the combined hash of all parameters except those in `except`.
std::string Fingerprint(const ParamHashes& hashes, const std::set<std::string>& except) {
  uint64_t all = 0;
  for (const auto& [name, hash] : hashes) {
    if (!except.contains(name)) all = (all ^ hash) * 0xD6E8FEB86659FD93 + (all >> 29);
  }
  return absl::StrFormat("%016x", all);
}

void AddOnce(const std::string& name, Json* list) {
  if (!absl::c_linear_search(*list, name)) list->push_back(name);
}

// True if PEFT would select a module that is no target by `name`: it selects modules with this name
// and modules whose names end with "." and this name.
bool SelectsOther(absl::string_view name, const LoraSpec& spec, const Family& family) {
  for (const absl::Span<const RoleName> part : family.names) {
    for (const RoleName& other : part) {
      if (!IsTarget(spec, other.role) &&
          absl::EndsWith(absl::StrCat(".", family.Name(other.role, 0)), absl::StrCat(".", name)))
        return true;
    }
  }
  return false;
}

// Returns target_modules, which select the modules of the spec's targets and no others.
Json TargetModules(const LoraSpec& spec, const ModelConfig& config) {
  Json modules = Json::array();
  for (const Role role : {Role::kQuery, Role::kKey, Role::kValue, Role::kQueryKeyValue, Role::kGate,
           Role::kIntermediate, Role::kAttentionOutput, Role::kOutput}) {
    const std::string name = config.family->Name(role, 0);
    if (name.empty() || !IsTarget(spec, role)) continue;
    // Find the shortest suffix of no other module; if it has the block's number, add all blocks.
    size_t dot = name.size();
    do dot = name.rfind('.', dot - 1);
    while (SelectsOther(name.substr(dot + 1), spec, *config.family));
    const std::string suffix = name.substr(dot + 1);
    const bool numbered = suffix[0] == '0';
    for (int i = 0; i < (numbered ? config.layers : 1); ++i)
      AddOnce(numbered ? absl::StrCat(i, suffix.substr(1)) : suffix, &modules);
  }
  return modules;
}

// Returns the entry of modules_to_save for a parameter, or "" for a bias without a module.
std::string ModuleOf(const Param& param, const ModelConfig& config) {
  const std::string module = param.name.substr(0, param.name.rfind('.'));
  const absl::string_view bare = absl::StripPrefix(module, config.family->prefix);
  switch (param.role) {
    case Role::kDecoderBias: return "";
    case Role::kPooler:
    case Role::kPooledOutput:
    case Role::kHeadOutput: return std::string(bare.substr(0, bare.find('.')));
    case Role::kEmbeddingsNorm:
    case Role::kRelativeNorm: return std::string(bare);
    default: return param.layer < 0 ? module.substr(module.rfind('.') + 1) : module;
  }
}

Json AdapterJson(const ModelConfig& config, const LoraSpec& spec, const std::string& base) {
  const float alpha = spec.alpha();
  Json json = {{"alpha_pattern", Json::object()}, {"auto_mapping", nullptr},
      {"base_model_name_or_path", base}, {"bias", "none"},
      {"fan_in_fan_out", config.family->transposed}, {"inference_mode", true},
      {"init_lora_weights", true}, {"layers_pattern", nullptr}, {"layers_to_transform", nullptr},
      {"lora_alpha", Decimal(alpha)}, {"lora_dropout", Decimal(spec.dropout())},
      {"peft_type", "LORA"}, {"r", spec.rank()}, {"rank_pattern", Json::object()},
      {"revision", nullptr}, {"target_modules", TargetModules(spec, config)},
      {"task_type", nullptr}, {"use_dora", false}, {"use_rslora", spec.rslora()}};
  if (alpha == std::floor(alpha)) json["lora_alpha"] = static_cast<int64_t>(alpha);
  const std::string task = TypeOf(config.head).peft_task;
  if (!task.empty()) json["task_type"] = task;
  return json;
}

}  // namespace

bool IsAdapter(const std::string& folder) { return PathExists(JoinPath(folder, kConfigName)); }

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, kConfigName);
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  RETURN_IF_ERROR(CheckSupported(json, path));
  JsonFields fields(json, path);
  int32_t rank = 0;
  float alpha = std::numeric_limits<float>::quiet_NaN(), dropout = 0;
  fields.Integer("r", true, 1, kMaxRank, &rank);
  fields.Number("lora_alpha", -kMaxAlpha, kMaxAlpha, &alpha);
  fields.Number("lora_dropout", 0, 0.999, &dropout);
  if (std::isnan(alpha)) fields.Fail("lora_alpha", "missing");
  AdapterConfig config;
  config.lora.set_rank(rank);
  config.lora.set_alpha(alpha);
  config.lora.set_dropout(dropout);
  config.lora.set_rslora(fields.Bool("use_rslora", false));
  config.base = fields.String("base_model_name_or_path");
  config.task = fields.String("task_type");
  if (!fields.status().ok()) return fields.status();
  return config;
}

absl::StatusOr<std::string> BaseOf(const std::string& folder) {
  ASSIGN_OR_RETURN(const AdapterConfig config, ReadAdapterConfig(folder));
  const bool relative = !config.base.empty() && config.base[0] != '/';
  const std::string path = JoinPath(folder, config.base);
  if (relative && IsDirectory(path)) return path;
  const std::string base = absl::StrCat("its base ", Quote(config.base, 1024),
      relative ? " does not exist relative to its folder" : " is not a relative path");
  return Error(Exit::kNoInput, QuotePath(folder), ": is an adapter, and ",
      config.base.empty() ? "names no base" : base, "; give both: --model BASE --adapter ",
      QuotePath(folder));
}

absl::StatusOr<std::string> BaseFolder(const std::string& folder, const std::string& given) {
  if (!IsAdapter(folder)) return folder;
  return given.empty() ? BaseOf(folder) : given;
}

ParamHashes HashParams(const ParamStore& store, const ModelConfig& config) {
  ParamHashes hashes;
  std::vector<std::pair<const Param*, uint64_t*>> work;
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (param.adapter < 0 && param.layer < config.layers)
      work.emplace_back(&param, &hashes[param.name]);
  }
  ParallelFor(work.size(), [&](int64_t i) {
    const auto& [param, hash] = work[i];
    *hash = Hash(store.values().subspan(param->offset, param->size()));
  });
  return hashes;
}

ParamHashes HashBase(const ParamStore& store, const ModelConfig& config) {
  return config.int8 ? config.original : HashParams(store, config);
}

absl::StatusOr<Adapter> Adapter::Open(const std::string& folder, const ModelConfig& base) {
  RETURN_IF_ERROR(CheckFolder(folder));
  ASSIGN_OR_RETURN(AdapterConfig file, ReadAdapterConfig(folder));
  ASSIGN_OR_RETURN(
      SafetensorsReader reader, SafetensorsReader::Open(JoinPath(folder, kWeightsName)));
  Adapter adapter(folder, std::move(file), std::move(reader));
  RETURN_IF_ERROR(adapter.JoinConfig(base));
  RETURN_IF_ERROR(adapter.MapTensors());
  RETURN_IF_ERROR(adapter.Match());
  return adapter;
}

// Takes head and labels from the config.json beside the adapter, whose sizes must be the base's.
absl::Status Adapter::JoinConfig(const ModelConfig& base) {
  config_ = base;
  const std::string path = JoinPath(folder_, "config.json");
  if (!PathExists(path)) return JoinForeign(base);
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxConfigBytes));
  ASSIGN_OR_RETURN(const ModelConfig own, ParseConfig(json, path));
  if (const std::string other = CompareSizes(own, base); !other.empty())
    return Wrong("is an adapter for another base: ", other);
  config_.head = own.head;
  config_.pooler = own.pooler;
  config_.crf = own.crf;
  config_.mean_pooling = own.mean_pooling;
  config_.labels = own.labels;
  config_.problem_type = own.problem_type;
  config_.task_fields = own.task_fields;
  return absl::OkStatus();
}

// Without config.json, task_type gives the head, and the shape of the output layer gives the number
// of labels.
absl::Status Adapter::JoinForeign(const ModelConfig& base) {
  if (file_.task.empty() || file_.task == TypeOf(HeadKind::kNone).peft_task)
    return absl::OkStatus();
  const auto types = HeadTypes();
  const auto* const type =
      absl::c_find_if(types, [&](const HeadType& t) { return t.peft_task == file_.task; });
  if (type == types.end())
    return Wrong("task_type ", Quote(file_.task), ": no encoder has such a head");
  if (type->tied) {  // LoRA of the base and its head
    if (type->kind == base.head) return absl::OkStatus();
    return Wrong("task_type ", Quote(file_.task), ": the base has no such head");
  }
  config_.head = type->kind;
  config_.pooler = type->pooler;
  const std::string output =
      config_.Key(type->pooler ? Role::kPooledOutput : Role::kHeadOutput, base.layers)
          .Of(Part::kWeight)
          .name;
  const TensorInfo* weight = reader_.Find(kPrefix + output);
  if (weight == nullptr) return Wrong("has no ", kPrefix, output, ", so no labels");
  if (weight->shape.size() != 2 || weight->shape[1] != base.hidden || weight->shape[0] < 1 ||
      weight->shape[0] > kMaxLabels)
    return Wrong(
        "does not fit the base: ", kPrefix, output, " has shape ", ShapeString(weight->shape));
  const size_t labels = weight->shape[0];
  if (config_.head == base.head && labels == base.labels.size()) return absl::OkStatus();
  config_.labels.clear();
  for (size_t i = 0; i < labels; ++i) config_.labels.push_back(absl::StrCat("LABEL_", i));
  return absl::OkStatus();
}

absl::Status Adapter::MapTensors() {
  for (const TensorInfo& tensor : reader_.tensors()) {
    const std::string bare(absl::StripPrefix(tensor.name, kPrefix));
    if (bare == tensor.name)
      return Wrong(Quote(tensor.name), ": expected a name that begins with ", kPrefix);
    const std::string name = CanonicalName(bare, *config_.family);
    if (!tensors_.emplace(name, &tensor).second) return Wrong(Quote(tensor.name), ": given twice");
  }
  return absl::OkStatus();
}

// Checks the tensors against a model with a LoRA on every linear layer.
absl::Status Adapter::Match() {
  ParamStore model;  // names and shapes only
  Encoder encoder(&model, config_);
  Head head(&model, config_, encoder.word_embeddings());
  encoder.AddLora(&model, {file_.lora, [](const ParamKey&) { return true; }, 0});
  for (const auto& [name, tensor] : tensors_) {
    const ParamId id = model.Find(name, 0);
    const Param* param = id < 0 ? nullptr : &model.param(id);
    const bool block = id >= 0 && param->layer >= 0 && param->layer < config_.layers;
    if (id < 0 || (block && !param->lora())) {
      return Wrong(Quote(tensor->name),
          id < 0 ? ": the base has no such module" : ": cannot be used",
          "; expected LoRA matrices, parameters of the head or embeddings of this base");
    }
    if (tensor->shape != param->shape()) {
      return Wrong("does not fit its rank, its labels or its base: ", Quote(tensor->name),
          ": expected shape ", ShapeString(param->shape()), ", found ", ShapeString(tensor->shape));
    }
    if (!param->lora()) {
      whole_.push_back(*param);
      continue;
    }
    const Param& other = model.param(param->part == Part::kLoraA ? id + 1 : id - 1);
    if (!tensors_.contains(other.name))
      return Wrong(Quote(tensor->name), ": has only one of lora_A and lora_B");
    lora_.emplace(param->role, param->layer);
  }
  return lora_.empty() ? Wrong("holds no LoRA") : absl::OkStatus();
}

LoraPlan Adapter::Plan(int number) const {
  const auto wanted = [lora = lora_](const ParamKey& module) {
    return lora.contains({module.role, module.layer});
  };
  return {file_.lora, wanted, number};
}

absl::Status Adapter::CheckBase(const ParamHashes& base) const {
  const auto known = reader_.metadata().find(kFingerprint);
  std::set<std::string> except;
  for (const Param& param : whole_) except.insert(param.name);
  const bool unknown = base.empty() || known == reader_.metadata().end();
  if (unknown || known->second == Fingerprint(base, except)) return absl::OkStatus();
  return Wrong("is an adapter for another base: the weights are not those that it was trained on",
      file_.base.empty() ? "" : absl::StrCat(", in ", QuotePath(file_.base)));
}

absl::Status Adapter::Load(int number, ParamStore* store) const {
  for (const auto& [name, tensor] : tensors_) {
    const ParamId id = store->Find(name, number);
    if (id < 0) return Wrong(Quote(tensor->name), ": is not part of this model");
    const Param& param = store->param(id);
    RETURN_IF_ERROR(
        reader_.ReadF32(tensor->name, store->values().subspan(param.offset, param.size())));
  }
  store->Changed();
  return absl::OkStatus();
}

absl::Status SaveAdapter(const std::string& folder, const ModelConfig& config, const LoraSpec& spec,
    const std::string& base, const ParamStore& store) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  std::vector<TensorData> tensors;
  std::set<std::string> trained;
  Json modules = Json::array();
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (!param.trainable) continue;
    const std::string module = param.lora() ? "" : ModuleOf(param, config);
    if (!module.empty()) AddOnce(module, &modules);
    trained.insert(param.name);
    tensors.push_back({kPrefix + param.name, param.shape(), FileType::kF32,
        store.values().data() + param.offset});
  }
  Metadata metadata = DefaultMetadata();
  metadata[kFingerprint] = Fingerprint(HashParams(store, config), trained);
  RETURN_IF_ERROR(ReplaceSafetensors(JoinPath(folder, kWeightsName), tensors, metadata));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, "config.json"), FormatConfig(config)));
  Json json = AdapterJson(config, spec, base);
  json["modules_to_save"] = std::move(modules);
  return WriteFileAtomically(JoinPath(folder, kConfigName), ToJsonText(json));
}

absl::Status MoveBase(const std::string& from, const std::string& home, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string base, BaseOf(from));
  const std::string path = JoinPath(from, kConfigName);
  ASSIGN_OR_RETURN(Json json, ReadJson(path));
  json["base_model_name_or_path"] = RelativePath(base, home);
  return WriteFileAtomically(JoinPath(folder, kConfigName), ToJsonText(json));
}

void MergeLora(const LoraSpec& spec, ParamStore* store) {
  const float scale = LoraScale(spec);
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& param = store->param(id);
    if (param.part != Part::kLoraA) continue;
    const Mat a = store->value(id), b = store->value(id + 1),
              w = store->value(store->FindWeight(param.role, param.layer));
    ParallelFor(w.rows, [&](int64_t r) {
      for (int64_t c = 0; c < w.cols; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < a.rows; ++k) sum += double{b.f32(r)[k]} * a.f32(k)[c];
        w.f32(r)[c] += static_cast<float>(scale * sum);
      }
    });
  }
  store->Changed();
}

}  // namespace cloze
