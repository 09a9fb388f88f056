#include "encoder/folder/adapter.h"

#include <bit>
#include <cmath>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/manifest/manifest.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

constexpr char kWeightsName[] = "adapter_model.safetensors";
constexpr char kPrefix[] = "base_model.model.";
constexpr char kFingerprint[] = "cloze_base";  // metadata: hash of the base's values

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

// Adds what PEFT needs so that the output layer of a tied head has the trained matrix, too: a copy
// of its module, whose bias is that of the head.
void AddOutput(const ModelConfig& config, const ParamStore& store, std::vector<TensorData>* tensors,
    Json* modules) {
  const ParamId words = FindWeight(store, Role::kWordEmbeddings, -1),
                untied = FindWeight(store, Role::kDecoder, config.layers),
                matrix = untied < 0 ? words : untied;
  if (!TypeOf(config.head).tied || !store.param(matrix).trainable) return;
  const ParamKey output = config.Key(Role::kDecoder, config.layers);
  AddOnce(output.name, modules);
  const auto add = [&](ParamId id, ParamKind kind) {
    const Param& param = store.param(id);
    const std::string name = kPrefix + KeyOf(output, kind).name;
    if (absl::c_none_of(*tensors, [&](const TensorData& t) { return t.name == name; }))
      tensors->push_back(
          {name, param.shape(), FileType::kF32, store.values().data() + param.offset});
  };
  add(matrix, ParamKind::kWeight);
  const ParamId bias =
      store.Find(KeyOf(config.Key(Role::kDecoderBias, config.layers), ParamKind::kBias).name);
  if (bias >= 0) add(bias, ParamKind::kBias);
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
  RETURN_IF_ERROR(adapter.MapOutput());
  RETURN_IF_ERROR(adapter.Match());
  return adapter;
}

// Takes head and labels from the config.json beside the adapter, whose sizes must be the base's.
absl::Status Adapter::JoinConfig(const ModelConfig& base) {
  config_ = base;
  const std::string path = JoinPath(folder_, "config.json");
  if (!PathExists(path)) return JoinForeign(base);
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxConfigBytes));
  ASSIGN_OR_RETURN(const ModelConfig saved, ParseConfig(json, path));
  if (const std::string other = CompareSizes(saved, base); !other.empty())
    return Wrong("is an adapter for another base: ", other);
  config_.head = saved.head;
  config_.pooler = saved.pooler;
  config_.crf = saved.crf;
  config_.pooling = saved.pooling;
  config_.labels = saved.labels;
  config_.problem_type = saved.problem_type;
  config_.task_fields = saved.task_fields;
  return absl::OkStatus();
}

// Without config.json, task_type gives the head, and the shape of the output layer gives the number
// of labels.
absl::Status Adapter::JoinForeign(const ModelConfig& base) {
  if (file_.task.empty() || file_.task == TypeOf(HeadKind::kNone).peft_task)
    return absl::OkStatus();
  const auto* const type =
      absl::c_find_if(kHeadTypes, [&](const HeadType& t) { return t.peft_task == file_.task; });
  if (type == std::end(kHeadTypes))
    return Wrong("task_type ", Quote(file_.task), ": no encoder has such a head");
  if (type->tied) {  // LoRA of the base and its head
    if (type->kind == base.head) return absl::OkStatus();
    return Wrong("task_type ", Quote(file_.task), ": the base has no such head");
  }
  config_.head = type->kind;
  config_.pooler = type->pooler;
  const std::string output =
      KeyOf(config_.Key(type->pooler ? Role::kPooledOutput : Role::kHeadOutput, base.layers),
          ParamKind::kWeight)
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
    const size_t lora = bare.find(".lora_");
    const absl::string_view module = absl::string_view(bare).substr(0, lora);
    const auto names = [&](const std::string& target) {
      return module == target || absl::EndsWith(module, "." + target);
    };
    if (lora != bare.npos && !file_.targets.empty() && absl::c_none_of(file_.targets, names))
      return Wrong(Quote(tensor.name), ": target_modules does not name its module");
    if (!tensors_.emplace(name, &tensor).second) return Wrong(Quote(tensor.name), ": given twice");
  }
  return absl::OkStatus();
}

// True if PEFT keeps a copy of the module, or of one that it is part of, for the adapter.
bool Adapter::Saves(const ParamKey& module) const {
  for (size_t end = 0; end < module.name.size(); ++end) {
    end = std::min(module.name.find('.', end), module.name.size());
    const absl::string_view part = absl::string_view(module.name).substr(0, end);
    if (absl::c_any_of(file_.saved, [&](const auto& name) { return absl::EndsWith(part, name); }))
      return true;
  }
  return false;
}

// Maps the tensors of a tied head, whose output matrix is the word embeddings. PEFT gives a saved
// module a copy of its own, so that the other keeps the matrix of the base; a tensor of a module
// without a copy is the matrix of both. Adapters of earlier versions, which hold a fingerprint and
// no output matrix, mean both.
absl::Status Adapter::MapOutput() {
  if (!TypeOf(config_.head).tied || config_.encoder != nullptr) return absl::OkStatus();
  const ParamKey output = config_.Key(Role::kDecoder, config_.layers),
                 words = config_.Key(Role::kWordEmbeddings, -1);
  const std::string bias =
      KeyOf(config_.Key(Role::kDecoderBias, config_.layers), ParamKind::kBias).name;
  if (const auto copy = tensors_.find(KeyOf(output, ParamKind::kBias).name);
      copy != tensors_.end() && copy->first != bias) {
    tensors_[bias] = copy->second;
    tensors_.erase(copy);
  }
  const auto to = tensors_.find(KeyOf(output, ParamKind::kWeight).name),
             from = tensors_.find(KeyOf(words, ParamKind::kWeight).name);
  if (config_.untied || (to == tensors_.end() && from == tensors_.end())) return absl::OkStatus();
  const bool ours = reader_.metadata().contains(kFingerprint);
  if (config_.head_calls_embeddings && !ours)
    return Wrong("saves the word embeddings of a base whose config.json has legacy: false, which ",
        "is not supported");
  config_.untied = true;
  if (to == tensors_.end() && (ours || file_.ties_copies || !Saves(words)))
    tensors_[KeyOf(output, ParamKind::kWeight).name] = from->second;
  if (from == tensors_.end() && (file_.ties_copies || !Saves(output)))
    tensors_[KeyOf(words, ParamKind::kWeight).name] = to->second;
  return absl::OkStatus();
}

// Checks the tensors against a model with a LoRA on every linear layer.
absl::Status Adapter::Match() {
  ParamStore model;  // names and shapes only
  Backbone backbone = NewBackbone(&model, config_);
  NewHead(&model, config_, backbone.word_embeddings());
  backbone.AddLora(&model, PlanOf(
                               file_.lora, [](const ParamKey&) { return true; }, 0));
  for (const auto& [name, tensor] : tensors_) {
    const ParamId id = model.Find(name, 0);
    const Param* param = id < 0 ? nullptr : &model.param(id);
    const bool block = id >= 0 && param->layer >= 0 && param->layer < config_.layers;
    if (id < 0 || (block && !IsLora(*param))) {
      return Wrong(Quote(tensor->name),
          id < 0 ? ": the base has no such module" : ": cannot be used",
          "; expected LoRA matrices, parameters of the head or embeddings of this base");
    }
    if (tensor->shape != param->shape()) {
      return Wrong("does not fit its rank, its labels or its base: ", Quote(tensor->name),
          ": expected shape ", ShapeString(param->shape()), ", found ", ShapeString(tensor->shape));
    }
    if (!IsLora(*param)) {
      whole_.push_back(*param);
      continue;
    }
    const Param& other = model.param(param->kind == ParamKind::kLoraA ? id + 1 : id - 1);
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
  return PlanOf(file_.lora, wanted, number);
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
    const std::string module = IsLora(param) ? "" : ModuleOf(param, config);
    if (!module.empty()) AddOnce(module, &modules);
    trained.insert(param.name);
    tensors.push_back({kPrefix + param.name, param.shape(), FileType::kF32,
        store.values().data() + param.offset});
  }
  AddOutput(config, store, &tensors, &modules);
  Metadata metadata = DefaultMetadata();
  metadata[kFingerprint] = Fingerprint(HashParams(store, config), trained);
  RETURN_IF_ERROR(ReplaceSafetensors(JoinPath(folder, kWeightsName), tensors, metadata));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, "config.json"), FormatConfig(config)));
  Json json = AdapterJson(config, spec, base);
  json["modules_to_save"] = std::move(modules);
  return WriteFileAtomically(JoinPath(folder, kAdapterConfig), ToJsonText(json));
}

void MergeLora(const LoraSpec& spec, ParamStore* store) {
  const float scale = PlanOf(spec, {}, 0).scale;
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& param = store->param(id);
    if (param.kind != ParamKind::kLoraA) continue;
    const Mat a = store->value(id), b = store->value(id + 1),
              w = store->value(FindWeight(*store, param.role, param.layer));
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
