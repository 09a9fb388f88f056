// DeBERTa-v2 and v3 (He et al. 2021): attention adds products of queries and keys with vectors of
// distances; v2-xlarge has a convolution after its first block.
#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kDebertaNames[] = {
    {Role::kRelativePositions, "@encoder.rel_embeddings"},
    {Role::kRelativeNorm, "@encoder.LayerNorm"},
    {Role::kQuery, "@encoder.layer.#.attention.self.query_proj"},
    {Role::kKey, "@encoder.layer.#.attention.self.key_proj"},
    {Role::kValue, "@encoder.layer.#.attention.self.value_proj"},
    {Role::kPositionQuery, "@encoder.layer.#.attention.self.pos_query_proj"},
    {Role::kPositionKey, "@encoder.layer.#.attention.self.pos_key_proj"},
    {Role::kConvolution, "@encoder.conv.conv"},
    {Role::kConvolutionNorm, "@encoder.conv.LayerNorm"},
    {Role::kTransform, "cls.predictions.transform.dense"},
    {Role::kTransformNorm, "cls.predictions.transform.LayerNorm"},
    {Role::kDecoder, "cls.predictions.decoder"},
    {Role::kDecoderBias, "cls.predictions"},
    {Role::kPooler, "pooler.dense"},
    {Role::kPooledOutput, "classifier"},
};

// The masked-LM head of `legacy: false`, which computes the same.
constexpr Family::Alias kAliases[] = {
    {"lm_predictions.lm_head.dense.", "cls.predictions.transform.dense."},
    {"lm_predictions.lm_head.LayerNorm.", "cls.predictions.transform.LayerNorm."},
    {"lm_predictions.lm_head.bias", "cls.predictions.bias"},
};

constexpr absl::string_view kDebertaMembers[] = {"type_vocab_size", "position_biased_input",
    "pos_att_type", "relative_attention", "position_buckets", "max_relative_positions",
    "share_att_key", "norm_rel_ebd", "conv_kernel_size", "conv_groups", "conv_act",
    "pooler_hidden_act", "pooler_hidden_size", "pooler_dropout", "embedding_size", "legacy"};

constexpr struct {
  const char* name;
  ActivationKind kind;
} kConvolutionActivations[] = {{"tanh", ActivationKind::kTanh}, {"gelu", ActivationKind::kGelu},
    {"relu", ActivationKind::kRelu}};

// Reads a number of distances; transformers takes less than 1 as not set, which is 0 here.
int32_t Count(JsonFields& fields, const char* key) {
  const Json* value = fields.Find(key);
  int32_t count = 0;
  if (value == nullptr || (value->is_number_integer() && *value < 1)) return 0;
  fields.Integer(key, false, 1, 1'000'000, &count);
  return count;
}

// Reads the list, or the string "p2c|c2p", of products in attention.
void ReadTerms(JsonFields& fields, RelativeConfig* relative) {
  constexpr char kKey[] = "pos_att_type";
  const Json* value = fields.Find(kKey);
  std::vector<std::string> terms;
  if (value != nullptr && value->is_string()) {
    terms = absl::StrSplit(value->get<std::string>(), '|', absl::SkipWhitespace());
  } else if (value != nullptr && value->is_array()) {
    for (const Json& term : *value)
      terms.push_back(term.is_string() ? term.get<std::string>() : "");
  } else if (value != nullptr) {
    return fields.Fail(kKey, "expected a list of \"c2p\" and \"p2c\"");
  }
  for (const absl::string_view untrimmed : terms) {
    const absl::string_view term = absl::StripAsciiWhitespace(untrimmed);
    relative->query_terms |= term == "c2p";
    relative->key_terms |= term == "p2c";
    if (term != "c2p" && term != "p2c")
      return fields.Fail(kKey, Quote(term), ": expected \"c2p\" or \"p2c\"");
  }
}

void ReadDistances(JsonFields& fields, ModelConfig* config) {
  RelativeConfig& relative = config->relative;
  ReadTerms(fields, &relative);
  const bool used = fields.Bool("relative_attention", false),
             terms = relative.query_terms || relative.key_terms;
  if (used != terms) {
    return fields.Fail(used ? "pos_att_type" : "relative_attention",
        used ? "none: expected \"c2p\" or \"p2c\" with relative_attention"
             : "false: expected true with pos_att_type");
  }
  if (!used) return;
  fields.Integer("max_position_embeddings", true, 1, 1'000'000, &config->positions.count);
  const int32_t buckets = Count(fields, "position_buckets");
  int32_t furthest = Count(fields, "max_relative_positions");
  if (furthest == 0) furthest = config->positions.count;
  relative.span = buckets > 0 ? buckets : furthest;
  relative.furthest = buckets > 0 ? furthest : 0;
  const int32_t middle = buckets / 2;
  if (buckets > 0 && config->positions.count > middle + 1 &&
      (middle < 1 || furthest < middle + 2)) {
    return fields.Fail("position_buckets", buckets,
        ": expected at least 2 and less than twice the ", furthest, " of max_relative_positions");
  }
  relative.shared = fields.Bool("share_att_key", false);
  const std::string norm = fields.String("norm_rel_ebd");
  relative.norm = norm == "layer_norm";
  if (!relative.norm && norm != "none" && !norm.empty())
    fields.Fail("norm_rel_ebd", Quote(norm), ": expected \"layer_norm\" or \"none\"");
}

void ReadConvolution(JsonFields& fields, ModelConfig* config) {
  fields.Integer("conv_kernel_size", false, 0, 15, &config->relative.convolution);
  int32_t groups = 1;
  fields.Integer("conv_groups", false, 1, 1, &groups);
  if (config->relative.convolution == 0) return;
  int32_t layers = 0;
  fields.Integer("num_hidden_layers", true, 2, 1024, &layers);
  if (config->relative.convolution % 2 == 0)
    fields.Fail("conv_kernel_size", config->relative.convolution, ": expected an odd number");
  const std::string name = fields.String("conv_act");
  const auto* const known = absl::c_find_if(kConvolutionActivations,
      [&](const auto& entry) { return name.empty() || name == entry.name; });
  if (known == std::end(kConvolutionActivations))
    return fields.Fail("conv_act", Quote(name), ": expected tanh, gelu or relu");
  config->relative.convolution_activation = known->kind;
}

void ReadDeberta(JsonFields& fields, ModelConfig* config) {
  fields.Integer("type_vocab_size", false, 0, 1024, &config->embeddings.token_types);
  if (fields.Bool("position_biased_input", true)) config->positions.kind = Positions::kLearned;
  config->relative = {};  // unless the members say otherwise
  ReadDistances(fields, config);
  ReadConvolution(fields, config);
  if (const std::string name = fields.String("pooler_hidden_act"); name != "gelu" && !name.empty())
    fields.Fail("pooler_hidden_act", Quote(name), ": expected \"gelu\"");
  config->head_calls_embeddings = !fields.Bool("legacy", true);
  float dropout = 0;
  fields.Number("pooler_dropout", 0, 0, &dropout);
  fields.Integer("hidden_size", true, 1, kMaxHidden, &config->hidden);
  for (const char* key : {"embedding_size", "pooler_hidden_size"}) {
    int32_t read = config->hidden;
    fields.Integer(key, false, config->hidden, config->hidden, &read);
  }
}

void WriteDeberta(const ModelConfig& config, Json* json) {
  const RelativeConfig& relative = config.relative;
  Json& out = *json;
  out["type_vocab_size"] = config.embeddings.token_types;
  Json terms = Json::array();
  if (relative.key_terms) terms.push_back("p2c");
  if (relative.query_terms) terms.push_back("c2p");
  out["pos_att_type"] = std::move(terms);
  out["relative_attention"] = relative.any();
  out["position_buckets"] = relative.furthest > 0 ? relative.span : -1;
  out["max_relative_positions"] = relative.furthest > 0 ? relative.furthest
                                  : relative.any()      ? relative.span
                                                        : -1;
  out["norm_rel_ebd"] = relative.norm ? "layer_norm" : "none";
  out["share_att_key"] = relative.shared;
  out["position_biased_input"] = config.positions.kind != Positions::kNone;
  out["legacy"] = true;
  out["pooler_hidden_act"] = "gelu";
  out["pooler_hidden_size"] = config.hidden;
  if (config.relative.convolution == 0) return;
  out["conv_kernel_size"] = config.relative.convolution;
  for (const auto& [name, kind] : kConvolutionActivations) {
    if (kind == config.relative.convolution_activation) out["conv_act"] = name;
  }
}

}  // namespace

constinit const Family kDeberta = {
    .model_type = "deberta-v2",
    .classes = "DebertaV2",
    .prefix = "deberta.",
    // New models are as DeBERTa-v3.
    .architecture = {.embeddings = {.token_types = 0},
        .positions = {.kind = Positions::kNone},
        .relative = {.span = 256, .query_terms = true, .key_terms = true, .norm = true},
        .norm = {.epsilon = 1e-7f}},
    .head = {.pooler_activation = ActivationKind::kGelu, .sequence_dropout_only = true},
    .in_spec = EncoderSpec::DEBERTA,
    .keys = {.token_types = nullptr, .classifier_dropout = "cls_dropout"},
    .names = {kDebertaNames, kBertEncoderNames},
    .aliases = kAliases,
    .members = kDebertaMembers,
    .read = ReadDeberta,
    .write = WriteDeberta,
};

}  // namespace cloze
