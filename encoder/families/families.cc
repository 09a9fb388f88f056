// The families, and config.json of all of them. Its members of heads are in head_members.cc.
#include "encoder/families/families.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// Spellings of hidden_act; the first of a kind is written.
constexpr struct {
  const char* name;
  ActivationKind kind;
} kActivations[] = {{"gelu", ActivationKind::kGelu}, {"gelu_new", ActivationKind::kGeluTanh},
    {"relu", ActivationKind::kRelu}, {"gelu_python", ActivationKind::kGelu},
    {"gelu_pytorch_tanh", ActivationKind::kGeluTanh}, {"gelu_fast", ActivationKind::kGeluTanh},
    {"gelu_accurate", ActivationKind::kGeluTanh}, {"gelu_python_tanh", ActivationKind::kGeluTanh},
    {"silu", ActivationKind::kSilu}, {"swish", ActivationKind::kSilu}};

// The whole numbers of config.json that two models must share for one to use the other's weights.
// Int: int32_t, or const int32_t.
template <typename Int>
struct Size {
  const char* key;
  Int* value;
  int64_t low, high;
  bool required = true;
};

// Config: ModelConfig, or const ModelConfig.
template <typename Config>
auto SizesOf(Config& c) {
  const Family& family = *c.family;
  const ConfigKeys& keys = family.keys;
  std::vector<Size<std::remove_pointer_t<decltype(&c.vocab)>>> sizes = {
      {"vocab_size", &c.vocab, 1, kMaxTokenId}, {keys.hidden, &c.hidden, 1, kMaxHidden},
      {keys.layers, &c.layers, 1, kMaxLayers}, {keys.heads, &c.heads, 1, 1024},
      {keys.intermediate, &c.intermediate, 1, 262144,
          !family.architecture.attention.causal || family.joined.encoder != nullptr},
      {keys.positions, &c.positions.count, 1, 1'000'000},
      {keys.token_types, &c.embeddings.token_types, 1, 1024, false},
      {keys.embedding, &c.embeddings.size, 1, kMaxHidden, false},
      {keys.groups, &c.sharing.groups, 1, 1024, false},
      {keys.inner, &c.sharing.blocks_per_layer, 1, 16, false}};
  std::erase_if(sizes, [](const auto& size) { return size.key == nullptr; });
  return sizes;
}

// Numbers of config.json, in [0, most].
// Float: float, or const float.
template <typename Float>
struct Fraction {
  const char* key;
  Float* value;
  double most;
};

template <typename Config>
auto FractionsOf(Config& c) {
  const ConfigKeys& keys = c.family->keys;
  std::vector<Fraction<std::remove_pointer_t<decltype(&c.dropout)>>> fractions = {
      {keys.dropout, &c.dropout, 0.999}, {keys.attention_dropout, &c.attention.dropout, 0.999},
      {keys.classifier_dropout, &c.classifier_dropout, 0.999},
      {keys.norm_epsilon, &c.norm.epsilon, 0.1}, {"initializer_range", &c.initializer.range, 100}};
  std::erase_if(fractions, [](const auto& fraction) { return fraction.key == nullptr; });
  return fractions;
}

// Checks how sentence-transformers changes the number of a classifier with one label. Cloze gives
// the number itself, as transformers does.
void CheckActivations(JsonFields& fields) {
  const auto allow = [](JsonFields& object, const char* field) {
    object.AllowValues(field,
        {nullptr, "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"});
  };
  allow(fields, "sbert_ce_default_activation_function");
  const Json* json = fields.Find("sentence_transformers");
  if (json == nullptr) return;
  JsonFields settings = fields.Part("sentence_transformers", *json);
  if (!json->is_object()) return fields.Fail("sentence_transformers", "expected an object");
  settings.AllowOnly({"activation_fn", "version"});
  allow(settings, "activation_fn");
  fields.Take(settings.status());
}

void ReadFamily(JsonFields& fields, ModelConfig* config) {
  const std::string type = fields.String("model_type");
  const Family* family = FindFamily(type);
  if (family == nullptr) {
    std::vector<std::string> known;
    for (const Family* each : kFamilies) known.push_back(Quote(each->model_type));
    known.emplace_back(kEncoderDecoderType);
    fields.Fail("model_type", type.empty() ? "missing" : Quote(type), ": expected ", ListOr(known),
        "; others are not supported");
    return;
  }
  for (const char* decoder : {"is_decoder", "add_cross_attention"}) {
    if (fields.Bool(decoder, false)) fields.Fail(decoder, "true: expected false (not supported)");
  }
  if (fields.Find("rope_scaling") != nullptr) fields.Fail("rope_scaling", "expected null");
  CheckActivations(fields);
  *config = ModelConfig(*family);
  if (family->joined.encoder == nullptr) fields.AllowValues("is_encoder_decoder", {nullptr, false});
  if (config->attention.causal) CheckSearch(fields);
  if (family->read != nullptr) family->read(fields, config);
  const std::string positions = fields.String("position_embedding_type");
  const bool rotary = config->positions.kind == Positions::kRotary &&
                      (positions == "rotary" || positions == "sans_pos");
  if (!rotary && !positions.empty() && positions != "absolute") {
    fields.Fail("position_embedding_type", Quote(positions),
        ": expected \"absolute\"; others are not supported");
  }
}

void ReadActivation(JsonFields& fields, ModelConfig* config) {
  const char* key = config->family->keys.activation;
  const std::string name = fields.String(key);
  const auto* const known = absl::c_find_if(
      kActivations, [&](const auto& activation) { return activation.name == name; });
  if (known != std::end(kActivations)) {
    config->mlp.activation = known->kind;
  } else if (!name.empty()) {
    fields.Fail(key, Quote(name), ": expected gelu, gelu_new, relu or silu");
  }
}

void ReadSizes(JsonFields& fields, ModelConfig* config) {
  const Family& family = *config->family;
  for (const auto& size : SizesOf(*config))
    fields.Integer(size.key, size.required, size.low, size.high, size.value);
  for (const auto& fraction : FractionsOf(*config))
    fields.Number(fraction.key, 0, fraction.most, fraction.value);
  config->pad_id = config->positions.after_pad ? 1 : 0;  // the default of transformers
  fields.Integer("pad_token_id", false, 0, kMaxTokenId, &config->pad_id);
  if (config->positions.after_pad) {
    config->positions.offset = config->pad_id + 1;
  } else {
    config->positions.count += config->positions.offset;
  }
  if (!fields.status().ok()) return;
  if (config->hidden % config->heads != 0) {
    fields.Fail(family.keys.heads, config->heads, " does not divide ", family.keys.hidden, " ",
        config->hidden);
  }
  const int32_t head = config->hidden / config->heads;
  for (const char* key : {"head_dim", "attention_head_size"}) {
    int32_t read = head;
    fields.Integer(key, false, head, head, &read);
  }
  if (config->positions.kind == Positions::kRotary && head % 2 != 0) {
    fields.Fail(family.keys.heads, config->heads, ": heads of ", head,
        " dimensions: expected an even number for rotary positions");
  }
  if (config->sharing.groups > 0 && config->layers % config->sharing.groups != 0) {
    fields.Fail(family.keys.groups, config->sharing.groups, " does not divide ", family.keys.layers,
        " ", config->layers);
  }
  config->layers *= config->sharing.blocks_per_layer;
  if (config->layers > kMaxLayers)
    fields.Fail(family.keys.inner, config->sharing.blocks_per_layer, ": expected at most ",
        kMaxLayers, " blocks");
  if (config->pad_id >= config->vocab)
    fields.Fail("pad_token_id", config->pad_id, ", vocab_size is ", config->vocab);
  if (config->max_tokens() < 3) {
    fields.Fail(family.keys.positions, config->positions.count, ": expected at least ",
        config->positions.offset + 3,
        config->positions.offset > 0 ? "; positions start at pad_token_id + 1" : "");
  }
}

void ReadSpecialIds(JsonFields& fields, ModelConfig* config) {
  for (const char* key : kSpecialIds) {
    const Json* id = fields.Find(key);
    if (fields.IsNull(key)) config->special_ids[key] = -1;
    if (id == nullptr || id->is_array()) continue;
    fields.Integer(key, false, 0, kMaxTokenId, &config->special_ids[key]);
  }
}

// The family of a decoder writes the token that ends a text.
void WriteSpecialIds(const ModelConfig& config, Json* json) {
  for (const auto& [key, id] : config.special_ids) {
    const bool written = key == kSpecialIds[2] && json->contains(key);
    if (!written) (*json)[key] = id < 0 ? Json() : Json(id);
  }
}

// The encoder of a decoder.
void ReadSource(JsonFields& fields, ModelConfig* config) {
  if (config->family->joined.encoder == nullptr) return;
  ModelConfig encoder = *config;
  encoder.family = config->family->joined.encoder;
  encoder.is_encoder = true;
  encoder.attention.causal = encoder.attention.cross = false;
  ReadSizes(fields, &encoder);
  int32_t vocab = encoder.vocab;
  fields.Integer("decoder_vocab_size", false, vocab, vocab, &vocab);
  CheckTokenIds(fields, *config, vocab);
  config->encoder = std::make_shared<const ModelConfig>(std::move(encoder));
}

}  // namespace

void ReadRotary(JsonFields& fields, const char* field, const Json& rope, float* base) {
  if (rope.is_null()) return;
  if (!rope.is_object()) return fields.Fail(field, "expected an object");
  JsonFields rope_fields = fields.Part(field, rope);
  for (const char* name : {"rope_type", "type"}) {  // the second in older files
    if (const std::string type = rope_fields.String(name); !type.empty() && type != "default")
      rope_fields.Fail(name, Quote(type), ": expected \"default\"");
  }
  rope_fields.Number("rope_theta", 2, 1e9, base);
  float part = 1;
  rope_fields.Number("partial_rotary_factor", 1, 1, &part);
  rope_fields.AllowOnlyUnset({"rope_type", "type", "rope_theta", "partial_rotary_factor"});
  fields.Take(rope_fields.status());
}

void CheckSearch(JsonFields& fields) {
  fields.AllowValues("typical_p", {nullptr, 1, 1.0});
  fields.AllowValues("encoder_no_repeat_ngram_size", {nullptr, 0});
}

void CheckMembers(JsonFields& fields, const Family* family) {
  std::vector<absl::string_view> known = CommonMembers();
  if (family != nullptr) {
    const auto add = [&](const char* key) {
      if (key != nullptr) known.emplace_back(key);
    };
    for (const Family* half : {family, family->joined.encoder}) {
      if (half == nullptr) continue;
      const ModelConfig config(*half);
      for (const auto& size : SizesOf(config)) add(size.key);
      for (const auto& fraction : FractionsOf(config)) add(fraction.key);
      add(half->keys.activation);
    }
    for (const auto& [old, current] : family->old_keys) add(old);
    known.insert(known.end(), family->members.begin(), family->members.end());
  }
  fields.AllowOnlyUnset(known);
}

const Family* FindFamily(absl::string_view model_type) {
  const auto* const found = absl::c_find_if(
      kFamilies, [&](const Family* family) { return family->model_type == model_type; });
  return found == std::end(kFamilies) ? nullptr : *found;
}

absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path) {
  ASSIGN_OR_RETURN(Json root, ParseJson(json, path));
  const Json& type = JsonMember(root, "model_type");
  if (type == kEncoderDecoderType) return ParseEncoderDecoder(root, path);
  if (const Family* family = FindFamily(type.is_string() ? type.get<std::string>() : "")) {
    for (const auto& [old, current] : family->old_keys) {
      if (root.contains(old) && !root.contains(current)) root[current] = root[old];
    }
  }
  JsonFields fields(root, path);
  ModelConfig config;
  ReadFamily(fields, &config);
  if (!fields.status().ok()) return fields.status();
  ReadActivation(fields, &config);
  ReadSource(fields, &config);
  ReadSizes(fields, &config);
  ReadHead(fields, &config);
  config.untied = !fields.Bool("tie_word_embeddings", true) && TypeOf(config.head).tied &&
                  config.family->joined.encoder == nullptr;
  ReadQuantization(fields, &config);
  ReadSpecialIds(fields, &config);
  CheckMembers(fields, config.family);
  if (!fields.status().ok()) return fields.status();
  return config;
}

std::string FormatConfig(const ModelConfig& config) {
  const Family& family = *config.family;
  if (family.joined.standalone != nullptr) return ToJsonText(FormatEncoderDecoder(config));
  Json json = {{"dtype", "float32"}, {"model_type", family.model_type},
      {"pad_token_id", config.pad_id},
      {"tie_word_embeddings", !(config.untied && TypeOf(config.head).tied)}};
  for (const auto& size : SizesOf(config)) json[size.key] = *size.value;
  json[family.keys.layers] = config.layers / config.sharing.blocks_per_layer;
  if (const ModelConfig* encoder = config.encoder.get())
    for (const auto& size : SizesOf(*encoder)) json[size.key] = *size.value;
  for (const auto& [key, value, most] : FractionsOf(config)) {
    json[key] = nullptr;  // of classifier_dropout: as dropout
    if (*value >= 0) json[key] = Decimal(*value);
  }
  const auto* const activation =
      absl::c_find_if(kActivations, [&](const auto& a) { return a.kind == config.mlp.activation; });
  if (activation != std::end(kActivations)) json[family.keys.activation] = activation->name;
  WriteHead(config, &json);
  if (family.write != nullptr) family.write(config, &json);
  if (config.int8) WriteQuantization(config, &json);
  WriteSpecialIds(config, &json);
  return ToJsonText(json);
}

std::string CompareSizes(const ModelConfig& config, const ModelConfig& expected) {
  if (config.encoder != nullptr && config.family == expected.family) {
    std::string different = CompareSizes(*config.encoder, *expected.encoder);
    if (!different.empty()) return different;
  }
  if (config.family != expected.family) {
    return absl::StrCat(
        "model_type is ", config.family->model_type, ", expected ", expected.family->model_type);
  }
  const auto sizes = SizesOf(config), expected_sizes = SizesOf(expected);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (const int32_t found = *sizes[i].value, wanted = *expected_sizes[i].value; found != wanted)
      return absl::StrCat(sizes[i].key, " is ", found, ", expected ", wanted);
  }
  if (!(config.relative == expected.relative)) return "relative positions differ";
  return "";
}

std::string CanonicalName(const std::string& tensor, const Family& family) {
  std::string name = absl::StrReplaceAll(tensor, family.old_names);
  for (const Family::Alias& alias : family.aliases) {
    if (absl::StartsWith(tensor, alias.other))
      return absl::StrCat(alias.name, tensor.substr(absl::string_view(alias.other).size()));
  }
  const std::string top = absl::StrCat("@", name.substr(0, name.find('.')), ".");
  if (family.joined.standalone == nullptr)
    for (const absl::Span<const RoleName> part : family.names) {
      for (const RoleName& entry : part) {
        if (absl::StartsWith(absl::StrCat(entry.name, "."), top))
          return CanonicalName(absl::StrCat(family.prefix, name), family);
      }
    }
  if (absl::EndsWith(name, "embeddings.position_ids")) return "";
  const bool mask = absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".masked_bias");
  if (family.architecture.attention.causal && mask) return "";
  if (absl::EndsWith(name, "LayerNorm.gamma")) name.replace(name.size() - 5, 5, "weight");
  if (absl::EndsWith(name, "LayerNorm.beta")) name.replace(name.size() - 4, 4, "bias");
  return name;
}

}  // namespace cloze
