#include "encoder/folder/adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/number.h"
#include "core/base/threads.h"
#include "core/tensor/json.h"
#include "core/tensor/safetensors_writer.h"
#include "encoder/folder/model_folder.h"
#include "encoder/modules/encoder.h"
#include "encoder/modules/head.h"

namespace cloze {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxConfig = 16 << 20;
constexpr int32_t kMaxRank = 65536;
constexpr char kConfigName[] = "adapter_config.json", kWeightsName[] = "adapter_model.safetensors";
constexpr char kPrefix[] = "base_model.model.", kA[] = ".lora_A.weight", kB[] = ".lora_B.weight";
constexpr char kFingerprint[] = "cloze_base";  // in the file's metadata: hash of the base's values

std::vector<int64_t> ShapeOf(const Param& param) {
  return param.vector ? std::vector<int64_t>{param.cols}
                      : std::vector<int64_t>{param.rows, param.cols};
}

// Name of the linear layer of a LoRA's parameter.
std::string LayerName(const std::string& param) {
  return param.substr(0, param.size() - std::strlen(kA));
}

// The member, or null.
const Json& Member(const Json& json, const char* name) {
  static const Json null;
  const auto found = json.find(name);
  return found == json.end() ? null : *found;
}

// What of a PEFT config changes the numbers and is not computed here.
std::string Unsupported(const Json& json) {
  const Json& type = Member(json, "peft_type");
  if (type != "LORA")
    return absl::StrCat(
        "peft_type is ", type.dump(-1, ' ', true), ", only \"LORA\" can be computed");
  for (const char* name : {"use_dora", "lora_bias", "fan_in_fan_out"}) {
    if (Member(json, name) == true) return absl::StrCat(name, " is true, which cannot be computed");
  }
  for (const char* name : {"rank_pattern", "alpha_pattern"}) {
    if (!Member(json, name).empty())
      return absl::StrCat(name, " is set; layers of different rank or alpha cannot be computed");
  }
  const Json& bias = Member(json, "bias");
  if (!bias.is_null() && bias != "none")
    return absl::StrCat("bias is ", bias.dump(-1, ' ', true), ", only \"none\" can be computed");
  return "";
}

uint64_t Hash(absl::Span<const float> values) {
  uint64_t hash = 0x9E3779B97F4A7C15 + values.size();
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return hash;
}

// Hash of all but those in `except`, as text.
std::string Fingerprint(const ParamHashes& hashes, const std::set<std::string>& except) {
  uint64_t all = 0;
  for (const auto& [name, hash] : hashes) {
    if (except.count(name) == 0) all = (all ^ hash) * 0xD6E8FEB86659FD93 + (all >> 29);
  }
  return absl::StrFormat("%016x", all);
}

absl::string_view TaskName(HeadKind head) {
  switch (head) {
    case HeadKind::kSequenceClassification: return "SEQ_CLS";
    case HeadKind::kTokenTagging: return "TOKEN_CLS";
    case HeadKind::kNone: return "FEATURE_EXTRACTION";
    default: return "";
  }
}

// As PEFT finds them: a layer is one when its name is a target or ends with "." and a target.
std::vector<std::string> TargetModules(const LoraSpec& spec, const ModelConfig& config) {
  const auto has = [&](const char* layer) { return IsTarget(spec, absl::StrCat(".", layer)); };
  const bool both = has("attention.output.dense") && has("0.output.dense");
  std::vector<std::string> modules;
  for (const char* name : {"query", "key", "value"}) {
    if (has(absl::StrCat("attention.self.", name).c_str())) modules.push_back(name);
  }
  if (has("intermediate.dense")) modules.push_back("intermediate.dense");
  if (both) modules.push_back("output.dense");
  if (!both && has("attention.output.dense")) modules.push_back("attention.output.dense");
  for (int i = 0; !both && has("0.output.dense") && i < config.layers; ++i)
    modules.push_back(absl::StrCat(i, ".output.dense"));
  return modules;
}

// The module that PEFT saves whole for a parameter, or "" for a bias that is none's.
std::string ModuleOf(const std::string& param, const ModelConfig& config) {
  const std::string prefix = EncoderPrefix(config), module = param.substr(0, param.rfind('.'));
  if (absl::StartsWith(param, "classifier.")) return "classifier";
  if (absl::StartsWith(param, prefix + "pooler.")) return "pooler";
  if (module == "cls.predictions" || module == "lm_head") return "";
  if (absl::EndsWith(module, "embeddings.LayerNorm")) return "embeddings.LayerNorm";
  return absl::StartsWith(param, prefix + "embeddings.") ? module.substr(module.rfind('.') + 1)
                                                         : module;
}

std::string FormatAdapterConfig(const ModelConfig& config, const LoraSpec& spec,
    const std::string& base, const ParamStore& store) {
  Json modules = Json::array();
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (!param.trainable || IsLora(param.name)) continue;
    const std::string module = ModuleOf(param.name, config);
    if (!module.empty() && std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.push_back(module);
  }
  const std::string task(TaskName(config.head));
  const float alpha = spec.alpha();
  Json json = {{"alpha_pattern", Json::object()}, {"auto_mapping", nullptr},
      {"base_model_name_or_path", base}, {"bias", "none"}, {"fan_in_fan_out", false},
      {"inference_mode", true}, {"init_lora_weights", true}, {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr}, {"lora_alpha", Decimal(alpha)},
      {"lora_dropout", Decimal(spec.dropout())}, {"modules_to_save", modules},
      {"peft_type", "LORA"}, {"r", spec.rank()}, {"rank_pattern", Json::object()},
      {"revision", nullptr}, {"target_modules", TargetModules(spec, config)},
      {"task_type", nullptr}, {"use_dora", false}, {"use_rslora", spec.rslora()}};
  if (alpha == std::floor(alpha)) json["lora_alpha"] = static_cast<int64_t>(alpha);
  if (!task.empty()) json["task_type"] = task;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

bool IsAdapter(const std::string& folder) { return PathExists(JoinPath(folder, kConfigName)); }

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, kConfigName);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfig));
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  if (const std::string why = Unsupported(json); !why.empty())
    return Error(Exit::kMismatch, absl::StrCat(QuotePath(path), ": ", why));
  const auto wrong = [&](const char* field, absl::string_view expected) {
    return Error(Exit::kData,
        absl::StrCat(QuotePath(path), ": ", field, ": ",
            Quote(Member(json, field).dump(-1, ' ', true)), ", ", expected, " expected"));
  };
  AdapterConfig config;
  const Json &rank = Member(json, "r"), &alpha = Member(json, "lora_alpha"),
             &dropout = Member(json, "lora_dropout"), &rslora = Member(json, "use_rslora");
  if (!rank.is_number_integer() || rank < 1 || rank > kMaxRank)
    return wrong("r", absl::StrCat("a rank from 1 to ", kMaxRank));
  if (!alpha.is_number() || !std::isfinite(alpha.get<float>()))
    return wrong("lora_alpha", "a number");
  if (!dropout.is_null() && (!dropout.is_number() || dropout < 0 || dropout >= 1))
    return wrong("lora_dropout", "a probability below 1");
  if (!rslora.is_null() && !rslora.is_boolean()) return wrong("use_rslora", "true or false");
  config.lora.set_rank(rank.get<int32_t>());
  config.lora.set_alpha(alpha.get<float>());
  if (dropout.is_number()) config.lora.set_dropout(dropout.get<float>());
  config.lora.set_rslora(rslora == true);
  for (const auto& [field, out] :
      {std::pair("base_model_name_or_path", &config.base), std::pair("task_type", &config.task)}) {
    const Json& value = Member(json, field);
    if (!value.is_null() && !value.is_string()) return wrong(field, "a string");
    if (value.is_string()) *out = value.get<std::string>();
  }
  return config;
}

absl::StatusOr<std::string> BaseOf(const std::string& folder) {
  ASSIGN_OR_RETURN(const AdapterConfig config, ReadAdapterConfig(folder));
  if (IsDirectory(config.base)) return config.base;
  return Error(Exit::kNoInput,
      absl::StrCat(QuotePath(folder), ": is an adapter, ",
          config.base.empty()
              ? std::string("and names no base")
              : absl::StrCat("and its base ", QuotePath(config.base), " is not there"),
          "; give both: --model BASE --adapter ", QuotePath(folder)));
}

ParamHashes HashParams(const ParamStore& store, const ModelConfig& config) {
  std::vector<ParamId> ids;
  for (ParamId id = 0; id < store.size(); ++id) {
    const std::string& name = store.param(id).name;
    if (!IsOfAdapter(name) && LayerOf(name, config) < config.layers) ids.push_back(id);
  }
  std::vector<uint64_t> hashes(ids.size());
  ParallelFor(ids.size(), [&](int64_t i) {
    const Param& param = store.param(ids[i]);
    hashes[i] = Hash(store.values().subspan(param.offset, param.size()));
  });
  ParamHashes all;
  for (size_t i = 0; i < ids.size(); ++i) all[store.param(ids[i]).name] = hashes[i];
  return all;
}

absl::StatusOr<Adapter> Adapter::Open(const std::string& folder, const ModelConfig& base) {
  ASSIGN_OR_RETURN(AdapterConfig file, ReadAdapterConfig(folder));
  ASSIGN_OR_RETURN(
      SafetensorsReader reader, SafetensorsReader::Open(JoinPath(folder, kWeightsName)));
  Adapter adapter(folder, std::move(file), std::move(reader));
  RETURN_IF_ERROR(adapter.JoinConfig(base));
  RETURN_IF_ERROR(adapter.Name());
  RETURN_IF_ERROR(adapter.Match());
  return adapter;
}

// The head and labels are those of config.json beside the adapter, whose sizes have to be the
// base's.
absl::Status Adapter::JoinConfig(const ModelConfig& base) {
  config_ = base;
  const std::string path = JoinPath(folder_, "config.json");
  if (!PathExists(path)) return JoinForeign(base);
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxConfig));
  ASSIGN_OR_RETURN(const ModelConfig own, ParseConfig(json, path));
  const struct {
    const char* name;
    int64_t own, base;
  } kSizes[] = {{"vocab_size", own.vocab, base.vocab}, {"hidden_size", own.hidden, base.hidden},
      {"num_hidden_layers", own.layers, base.layers},
      {"num_attention_heads", own.heads, base.heads},
      {"intermediate_size", own.intermediate, base.intermediate},
      {"max_position_embeddings", own.max_positions, base.max_positions},
      {"type_vocab_size", own.token_types, base.token_types}};
  for (const auto& size : kSizes) {
    if (size.own != size.base)
      return Wrong(absl::StrCat("is an adapter for another base: its ", size.name, " is ", size.own,
          ", the base's ", size.base));
  }
  if (own.norm != base.norm || own.roberta != base.roberta)
    return Wrong("is an adapter for another base: its model_type is another");
  config_ = own;
  config_.activation = base.activation;
  config_.norm_epsilon = base.norm_epsilon;
  config_.pad_id = base.pad_id;
  config_.position_offset = base.position_offset;
  return absl::OkStatus();
}

// An adapter of PEFT itself: the task type says the head, the classifier's shape the number of
// labels.
absl::Status Adapter::JoinForeign(const ModelConfig& base) {
  if (file_.task.empty() || file_.task == "FEATURE_EXTRACTION") return absl::OkStatus();
  if (file_.task != "SEQ_CLS" && file_.task != "TOKEN_CLS")
    return Wrong(absl::StrCat("task_type ", Quote(file_.task),
        ", which no encoder has; SEQ_CLS and TOKEN_CLS can be computed"));
  config_.head =
      file_.task == "SEQ_CLS" ? HeadKind::kSequenceClassification : HeadKind::kTokenTagging;
  config_.pooler = config_.head == HeadKind::kSequenceClassification;
  const char* classifier =
      base.like_roberta() && config_.pooler ? "classifier.out_proj.weight" : "classifier.weight";
  const TensorInfo* weight = reader_.Find(absl::StrCat(kPrefix, classifier));
  if (weight == nullptr)
    return Wrong(absl::StrCat("has no ", kPrefix, classifier, ", so no labels"));
  if (weight->shape.size() != 2 || weight->shape[1] != base.hidden || weight->shape[0] > kMaxLabels)
    return Wrong(absl::StrCat(
        "does not fit the base: ", kPrefix, classifier, " has shape ", ShapeString(weight->shape)));
  const size_t labels = weight->shape[0];
  if (config_.head == base.head && labels == base.labels.size()) return absl::OkStatus();
  config_.labels.clear();
  for (size_t i = 0; i < labels; ++i) config_.labels.push_back(absl::StrCat("LABEL_", i));
  return absl::OkStatus();
}

// Finds our parameter for each tensor of the file.
absl::Status Adapter::Name() {
  for (const TensorInfo& tensor : reader_.tensors()) {
    const std::string bare(absl::StripPrefix(tensor.name, kPrefix));
    if (bare == tensor.name)
      return Wrong(
          absl::StrCat(Quote(tensor.name), ": a name that begins with ", kPrefix, " expected"));
    const std::string name = CanonicalName(bare, EncoderPrefix(config_));
    if (!tensors_.emplace(name, &tensor).second)
      return Wrong(absl::StrCat(Quote(tensor.name), ": comes twice"));
  }
  return absl::OkStatus();
}

absl::Status Adapter::MatchLora(
    const std::string& name, const TensorInfo& tensor, const ParamStore& model) const {
  const std::string layer = LayerName(name);
  const ParamId id = model.Find(layer + ".weight");
  if (id < 0 || model.param(id).vector || LayerOf(name, config_) < 0 ||
      LayerOf(name, config_) >= config_.layers)
    return Wrong(absl::StrCat("is an adapter for another base: it adds to ", Quote(layer),
        ", which the base does not have"));
  const bool a = absl::EndsWith(name, kA);
  if (tensors_.count(layer + (a ? kB : kA)) == 0)
    return Wrong(absl::StrCat(Quote(layer), ": has only one of lora_A and lora_B"));
  const Param& weight = model.param(id);
  const int64_t rank = file_.lora.rank();
  const std::vector<int64_t> shape =
      a ? std::vector<int64_t>{rank, weight.cols} : std::vector<int64_t>{weight.rows, rank};
  if (tensor.shape == shape) return absl::OkStatus();
  return Wrong(absl::StrCat("does not fit the base: ", Quote(tensor.name), " has shape ",
      ShapeString(tensor.shape), ", ", ShapeString(shape), " expected by r and the base"));
}

absl::Status Adapter::Match() {
  ParamStore model;  // names and shapes only
  Encoder encoder(&model, config_);
  Head head(&model, config_, encoder.word_embeddings());
  bool any = false;
  for (const auto& [name, tensor] : tensors_) {
    if (IsLora(name)) {
      RETURN_IF_ERROR(MatchLora(name, *tensor, model));
      any = true;
      continue;
    }
    const ParamId id = model.Find(name);
    const int layer = LayerOf(name, config_);
    if (id < 0 || (layer >= 0 && layer < config_.layers))
      return Wrong(absl::StrCat(
          Quote(tensor->name), ": cannot be used; LoRA layers, head and embeddings can"));
    const Param& param = model.param(id);
    if (tensor->shape != ShapeOf(param)) {
      return Wrong(
          absl::StrCat("does not fit its labels or its base: ", Quote(tensor->name), " has shape ",
              ShapeString(tensor->shape), ", ", ShapeString(ShapeOf(param)), " expected"));
    }
    whole_.push_back(param);
  }
  return any ? absl::OkStatus() : Wrong("holds no LoRA");
}

LoraPlan Adapter::Plan(int number, const std::string& prefix) const {
  std::set<std::string> layers;
  for (const auto& [name, tensor] : tensors_) {
    if (IsLora(name)) layers.insert(LayerName(name));
  }
  return {file_.lora, [layers](const std::string& layer) { return layers.count(layer) > 0; },
      number, prefix};
}

absl::Status Adapter::CheckBase(const ParamHashes& base) const {
  const auto known = reader_.metadata().find(kFingerprint);
  std::set<std::string> except;
  for (const Param& param : whole_) except.insert(param.name);
  if (known == reader_.metadata().end() || known->second == Fingerprint(base, except))
    return absl::OkStatus();
  return Wrong(absl::StrCat(
      "is an adapter for another base: the weights are not those that it was trained on",
      file_.base.empty() ? "" : absl::StrCat(", in ", QuotePath(file_.base))));
}

absl::Status Adapter::Load(const std::string& prefix, ParamStore* store) const {
  for (const auto& [name, tensor] : tensors_) {
    const ParamId id = store->Find(prefix + name);
    if (id < 0) return Wrong(absl::StrCat(Quote(tensor->name), ": is not part of this model"));
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
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& param = store.param(id);
    if (!param.trainable) continue;
    trained.insert(param.name);
    tensors.push_back({kPrefix + param.name, ShapeOf(param), FileType::kF32,
        store.values().data() + param.offset});
  }
  Metadata metadata = DefaultMetadata();
  metadata[kFingerprint] = Fingerprint(HashParams(store, config), trained);
  RETURN_IF_ERROR(ReplaceSafetensors(JoinPath(folder, kWeightsName), tensors, metadata));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, "config.json"), FormatConfig(config)));
  return WriteFileAtomically(
      JoinPath(folder, kConfigName), FormatAdapterConfig(config, spec, base, store));
}

void MergeLora(const LoraSpec& spec, ParamStore* store) {
  const float scale = LoraScale(spec);
  for (ParamId id = 0; id < store->size(); ++id) {
    if (!absl::EndsWith(store->param(id).name, kA)) continue;
    const std::string layer = LayerName(store->param(id).name);
    const Mat a = store->value(id), b = store->value(store->Find(layer + kB)),
              w = store->value(store->Find(layer + ".weight"));
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
