// The member of config.json that describes int8 weights.
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr char kQuantization[] = "quantization_config", kOriginal[] = "quantized_from";

// Members of the group of linear layers that must have these values.
struct GroupMember {
  const char *part, *member;
  Json value;
};
std::vector<GroupMember> GroupMembers() {
  return {{"weights", "num_bits", 8}, {"weights", "type", "int"},
      {"weights", "strategy", "channel"}, {"weights", "symmetric", true},
      {"input_activations", "num_bits", 8}, {"input_activations", "type", "int"},
      {"input_activations", "strategy", "token"}, {"input_activations", "dynamic", true}};
}

std::vector<std::pair<const char*, Json>> QuantizationMembers() {
  return {{"quant_method", "compressed-tensors"}, {"format", "int-quantized"},
      {"quantization_status", "compressed"}};
}

// Checks the members of a group of layers: of group_0 all linear ones, of group_1 the tables of
// embeddings, of which only the weights are quantized.
void CheckGroup(JsonFields& fields, const std::string& name, const Json& content) {
  if (!content.is_object()) return fields.Fail(name, "expected an object");
  JsonFields group = fields.Part(name, content);
  const bool linear = name == "group_0";
  group.AllowOnly({"targets", "weights", "input_activations", "output_activations", "format"});
  group.AllowValues("targets", {Json::array({linear ? "Linear" : "Embedding"})});
  group.AllowValues("output_activations", {nullptr});
  if (!linear) group.AllowValues("input_activations", {nullptr});
  group.AllowValues("format", {nullptr, "int-quantized"});
  for (const char* part : {"weights", "input_activations"}) {
    const Json* json = group.Find(part);
    if (json == nullptr) continue;
    if (!json->is_object()) return fields.Fail(part, "expected an object");
    const bool weights = part == absl::string_view("weights");
    JsonFields part_fields = group.Part(part, *json);
    part_fields.AllowOnly({"num_bits", "type", "strategy", "symmetric", "dynamic", "group_size",
        "block_structure", "actorder", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"});
    for (const char* none : {"group_size", "block_structure", "actorder"})
      part_fields.AllowValues(none, {nullptr});
    if (weights) part_fields.AllowValues("dynamic", {nullptr, false});
    if (!linear)
      for (const auto& [of, member, value] : GroupMembers())
        if (of == absl::string_view(part)) part_fields.AllowValues(member, {value});
    group.Take(part_fields.status());
  }
  fields.Take(group.status());
}

}  // namespace

void ReadQuantization(JsonFields& fields, ModelConfig* config) {
  const Json* json = fields.Find(kQuantization);
  if (json == nullptr) return;
  const auto fail = [&](const std::string& member, const Json& expected) {
    fields.Fail(kQuantization, member, ": expected ", expected.dump(),
        "; other schemes are not supported (quantize the original with `cloze quantize`)");
  };
  if (!json->is_object()) return fields.Fail(kQuantization, "expected an object");
  for (const auto& [member, value] : QuantizationMembers()) {
    if (JsonMember(*json, member) != value) return fail(member, value);
  }
  const Json &groups = JsonMember(*json, "config_groups"), &group = JsonMember(groups, "group_0");
  for (const auto& [part, member, value] : GroupMembers()) {
    if (JsonMember(JsonMember(group, part), member) != value)
      return fail(absl::StrCat("group_0.", part, ".", member), value);
  }
  JsonFields part_fields = fields.Part(kQuantization, *json);
  part_fields.AllowOnly({"quant_method", "format", "quantization_status", "config_groups", "ignore",
      "global_compression_ratio", "kv_cache_scheme", "sparsity_config", "transform_config",
      "version"});
  for (const char* none : {"kv_cache_scheme", "sparsity_config", "transform_config"})
    part_fields.AllowValues(none, {nullptr, Json::object()});
  JsonFields all = part_fields.Part("config_groups", groups);
  all.AllowOnly({"group_0", "group_1"});
  part_fields.Take(all.status());
  for (const auto& [name, content] : groups.items()) CheckGroup(part_fields, name, content);
  fields.Take(part_fields.status());
  const Json& ignore = JsonMember(*json, "ignore");
  if (!ignore.is_array()) return fail("ignore", Json::array());
  for (const Json& name : ignore) {
    if (!name.is_string()) return fail("ignore", Json::array({"module"}));
    config->unquantized.push_back(name.get<std::string>());
  }
  config->int8 = true;
  const Json* original = fields.Find(kOriginal);
  if (original == nullptr) return;
  if (!original->is_object()) return fields.Fail(kOriginal, "expected an object");
  for (const auto& [name, hash] : original->items()) {
    if (!hash.is_number_unsigned()) return fields.Fail(kOriginal, Quote(name), ": expected a hash");
    config->original[name] = hash.get<uint64_t>();
  }
}

void WriteQuantization(const ModelConfig& config, Json* to) {
  Json weights = {{"dynamic", false}}, activations = {{"symmetric", false}};
  for (const auto& [part, member, value] : GroupMembers())
    (absl::string_view(part) == "weights" ? weights : activations)[member] = value;
  Json json = {{"ignore", config.unquantized}};
  for (const auto& [member, value] : QuantizationMembers()) json[member] = value;
  // Tables of embeddings are stored as int8, and used as floating-point numbers.
  json["config_groups"] = {{"group_0", {{"targets", {"Linear"}}, {"weights", weights},
                                           {"input_activations", activations}}},
      {"group_1", {{"targets", {"Embedding"}}, {"weights", weights}}}};
  (*to)[kQuantization] = json;
  if (!config.original.empty()) (*to)[kOriginal] = config.original;
}

}  // namespace cloze
