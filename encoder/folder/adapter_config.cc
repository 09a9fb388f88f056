// adapter_config.json of PEFT: the members that are understood.
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

constexpr int32_t kMaxRank = 65536;
constexpr double kMaxAlpha = 1e30;

// Members that choose the modules and their start values, or describe the file: the tensors say
// what came of them.
constexpr absl::string_view kWithoutEffect[] = {"auto_mapping", "base_model_name_or_path",
    "enable_lora", "eva_config", "exclude_modules", "fan_in_fan_out", "inference_mode",
    "layers_pattern", "layers_to_transform", "megatron_core", "merge_weights", "peft_version",
    "qalora_group_size", "revision", "target_modules"};
constexpr absl::string_view kRead[] = {"ensure_weight_tying", "lora_alpha", "lora_dropout",
    "modules_to_save", "peft_type", "r", "task_type", "use_rslora"};
// Members of PEFT 0.20 that stand for other methods, and change nothing if they are not set.
constexpr const char* kUnset[] = {"alora_invocation_tokens", "alpha_pattern", "arrow_config",
    "corda_config", "kasa_config", "layer_replication", "loftq_config", "lora_bias",
    "lora_ga_config", "megatron_config", "monteclora_config", "rank_pattern", "target_parameters",
    "trainable_token_indices", "use_bdlora", "use_dora", "use_qalora", "velora_config"};

// kMismatch for members and values that are not in the tables.
absl::Status CheckSupported(const Json& json, const std::string& path) {
  JsonFields fields(json, path);
  if (JsonMember(json, "peft_type") != Json("LORA"))
    fields.Fail("peft_type", Quote(JsonMember(json, "peft_type").dump(-1, ' ', true)),
        ": expected \"LORA\"");
  std::vector<absl::string_view> known = {"bias", "init_lora_weights"};
  known.insert(known.end(), std::begin(kRead), std::end(kRead));
  known.insert(known.end(), std::begin(kWithoutEffect), std::end(kWithoutEffect));
  for (const char* member : kUnset) {
    known.emplace_back(member);
    fields.AllowValues(member, {nullptr, false, Json::array(), Json::object()});
  }
  fields.AllowOnly(known);
  fields.AllowValues("bias", {nullptr, "none"});
  const Json& start = JsonMember(json, "init_lora_weights");
  const std::string name = start.is_string() ? absl::AsciiStrToLower(start.get<std::string>()) : "";
  // These leave the base as it is.
  if (!start.is_null() && !start.is_boolean() && name != "gaussian" && name != "eva" &&
      name != "orthogonal")
    fields.Fail("init_lora_weights", Quote(start.dump(-1, ' ', true)),
        ": expected true: it changes the base (PEFT can save such an adapter as one of the ",
        "unchanged base)");
  if (fields.status().ok()) return absl::OkStatus();
  return Error(Exit::kMismatch, fields.status().message());
}

}  // namespace

bool IsAdapter(const std::string& folder) { return PathExists(JoinPath(folder, kAdapterConfig)); }

LoraPlan PlanOf(
    const LoraSpec& spec, std::function<bool(const ParamKey& module)> wanted, int adapter) {
  const float rank = static_cast<float>(spec.rank());
  return {spec.rank(), spec.alpha() / (spec.rslora() ? std::sqrt(rank) : rank), spec.dropout(),
      std::move(wanted), adapter};
}

bool IsTarget(const LoraSpec& spec, Role role) {
  static constexpr Role kRoles[] = {Role::kQuery, Role::kKey, Role::kValue, Role::kAttentionOutput,
      Role::kIntermediate, Role::kOutput};  // by Target
  static_assert(std::size(kRoles) == LoraSpec::Target_ARRAYSIZE);
  const auto is = [&](Role target) {
    const bool projection =
        target == Role::kQuery || target == Role::kKey || target == Role::kValue;
    return role == target || (role == Role::kQueryKeyValue && projection) ||
           (role == Role::kGate && target == Role::kIntermediate);
  };
  if (spec.targets().empty()) return is(Role::kQuery) || is(Role::kValue);
  return absl::c_any_of(spec.targets(), [&](int target) { return is(kRoles[target]); });
}

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, kAdapterConfig);
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
  config.ties_copies = fields.Bool("ensure_weight_tying", false);
  const auto read_names = [&](const char* member, const Json& list, std::vector<std::string>* out) {
    const auto is_name = [](const Json& name) { return name.is_string(); };
    if (!list.is_array() || !absl::c_all_of(list, is_name))
      return fields.Fail(member, "expected a list of names");
    for (const Json& name : list) out->push_back(name.get<std::string>());
  };
  if (const Json* saved = fields.Find("modules_to_save"))
    read_names("modules_to_save", *saved, &config.saved);
  if (const Json* targets = fields.Find("target_modules"); targets && !targets->is_string())
    read_names("target_modules", *targets, &config.targets);
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
      config.base.empty() ? "names no base" : base,
      ": expected the base as the model, and this folder as its adapter");
}

absl::StatusOr<std::string> BaseFolder(const std::string& folder, const std::string& given) {
  if (!IsAdapter(folder)) return folder;
  return given.empty() ? BaseOf(folder) : given;
}

absl::Status MoveBase(const std::string& from, const std::string& home, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string base, BaseOf(from));
  const std::string path = JoinPath(from, kAdapterConfig);
  ASSIGN_OR_RETURN(Json json, ReadJson(path));
  json["base_model_name_or_path"] = RelativePath(base, home);
  return WriteFileAtomically(JoinPath(folder, kAdapterConfig), ToJsonText(json));
}

}  // namespace cloze
