// ModernBERT (Warner et al. 2024): rotary positions, gated MLP, pre-norm, no biases, and windows of
// attention in most layers. Where its classes drop attention_dropout or mlp_dropout inside a layer,
// this program applies mlp_dropout to the layer's output.
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kModernBertNames[] = {
    {Role::kWordEmbeddings, "@embeddings.tok_embeddings"},
    {Role::kEmbeddingsNorm, "@embeddings.norm"},
    {Role::kAttentionNorm, "@layers.#.attn_norm"},
    {Role::kQueryKeyValue, "@layers.#.attn.Wqkv"},
    {Role::kAttentionOutput, "@layers.#.attn.Wo"},
    {Role::kFeedForwardNorm, "@layers.#.mlp_norm"},
    {Role::kIntermediate, "@layers.#.mlp.Wi"},
    {Role::kOutput, "@layers.#.mlp.Wo"},
    {Role::kFinalNorm, "@final_norm"},
    {Role::kTransform, "head.dense"},
    {Role::kTransformNorm, "head.norm"},
    {Role::kDecoder, "decoder"},
    {Role::kDecoderBias, "decoder"},
    {Role::kPooledOutput, "classifier"},
    {Role::kDiscriminatorOutput, "classifier"},
};

constexpr absl::string_view kModernBertMembers[] = {"attention_bias", "mlp_bias", "norm_bias",
    "classifier_bias", "decoder_bias", "classifier_activation", "classifier_pooling",
    "local_attention", "sliding_window", "global_attn_every_n_layers", "layer_types",
    "rope_parameters", "global_rope_theta", "local_rope_theta", "embedding_dropout",
    "initializer_cutoff_factor", "deterministic_flash_attn", "reference_compile",
    "repad_logits_with_grad", "sparse_prediction", "sparse_pred_ignore_index", "layer_norm_eps"};

constexpr char kLocal[] = "sliding_attention", kGlobal[] = "full_attention";

// Reads the list layer_types, or global_attn_every_n_layers of older files.
void ReadLayers(JsonFields& fields, ModelConfig* config) {
  fields.Integer("num_hidden_layers", true, 1, 1024, &config->layers);
  int32_t every = 3;
  fields.Integer("global_attn_every_n_layers", false, 1, 1024, &every);
  for (int i = 0; i < config->layers; ++i) config->attention.local.push_back(i % every != 0);
  const Json* types = fields.Find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array() || types->size() != config->attention.local.size())
    return fields.Fail("layer_types", "expected a list of ", config->layers, " types");
  for (size_t i = 0; i < types->size(); ++i) {
    config->attention.local[i] = (*types)[i] == kLocal;
    if (!config->attention.local[i] && (*types)[i] != kGlobal) {
      return fields.Fail("layer_types", Quote((*types)[i].dump(-1, ' ', true)), ": expected \"",
          kGlobal, "\" or \"", kLocal, "\"");
    }
  }
}

// Reads the base of `layers` in rope_parameters, or the member `old` of older files.
void ReadBase(JsonFields& fields, const char* layers, const char* old, float* base) {
  fields.Number(old, 2, 1e9, base);
  const Json* all = fields.Find("rope_parameters");
  if (all == nullptr) return;
  if (!all->is_object()) return fields.Fail("rope_parameters", "expected an object");
  JsonFields parts = fields.Part("rope_parameters", *all);
  parts.AllowOnlyUnset({kGlobal, kLocal});
  fields.Take(parts.status());
  ReadRotary(fields, "rope_parameters", JsonMember(*all, layers), base);
}

void ReadModernBert(JsonFields& fields, ModelConfig* config) {
  config->classifier_dropout = 0;  // the default of transformers
  for (const char* biases : {"attention_bias", "mlp_bias", "norm_bias", "classifier_bias"}) {
    if (fields.Bool(biases, false)) fields.Fail(biases, "true: expected false (not supported)");
  }
  if (!fields.Bool("decoder_bias", true))
    fields.Fail("decoder_bias", "false: expected true (not supported)");
  if (const std::string name = fields.String("classifier_activation"); name != "gelu" && name != "")
    fields.Fail("classifier_activation", Quote(name), ": expected \"gelu\"");
  const std::string pooling = fields.String("classifier_pooling");
  if (pooling == "mean") config->pooling = Pool::kMean;
  if (pooling != "mean" && pooling != "cls" && !pooling.empty())
    fields.Fail("classifier_pooling", Quote(pooling), ": expected \"cls\" or \"mean\"");
  fields.Integer("local_attention", false, 2, 1'000'000, &config->attention.window);
  if (fields.Find("sliding_window") != nullptr) {  // transformers prefers it
    fields.Integer("sliding_window", true, 1, 500'000, &config->attention.window);
    config->attention.window *= 2;
  }
  ReadLayers(fields, config);
  ReadBase(fields, kGlobal, "global_rope_theta", &config->positions.rotary_base[0]);
  ReadBase(fields, kLocal, "local_rope_theta", &config->positions.rotary_base[1]);
}

void WriteModernBert(const ModelConfig& config, Json* json) {
  Json& out = *json;
  Json types = Json::array(), rotary = Json::object();
  for (const bool local : config.attention.local) types.push_back(local ? kLocal : kGlobal);
  out["layer_types"] = std::move(types);
  out["local_attention"] = config.attention.window;
  rotary[kGlobal] = {
      {"rope_type", "default"}, {"rope_theta", Decimal(config.positions.rotary_base[0])}};
  rotary[kLocal] = {
      {"rope_type", "default"}, {"rope_theta", Decimal(config.positions.rotary_base[1])}};
  out["rope_parameters"] = std::move(rotary);
  out["classifier_pooling"] = config.pooling == Pool::kMean ? "mean" : "cls";
  out["embedding_dropout"] = Decimal(config.dropout);
  if (config.classifier_dropout < 0) out["classifier_dropout"] = Decimal(config.dropout);
}

}  // namespace

constinit const Family kModernBert = {
    .model_type = "modernbert",
    .classes = "ModernBert",
    .prefix = "model.",
    .architecture = {.embeddings = {.token_types = 0},
        .positions = {.kind = Positions::kRotary, .rotary_base = {160000, 10000}},
        .attention = {.window = 128, .dropout = 0},
        .mlp = {.gated = true},
        .norm = {.place = NormPlace::kBeforeExceptFirst, .biases = false, .epsilon = 1e-5f},
        .initializer = {.scaled_outputs = true},
        .biases = false,
        .dropout = 0},
    .head = {.transform_always = true,
        .transform_activation = ActivationKind::kGelu,
        .classifiers_pool_mean = true},
    .in_spec = EncoderSpec::MODERN,
    .keys = {.token_types = nullptr,
        .activation = "hidden_activation",
        .norm_epsilon = "norm_eps",
        .dropout = "mlp_dropout",
        .attention_dropout = "attention_dropout"},
    .names = {kModernBertNames},
    .members = kModernBertMembers,
    .read = ReadModernBert,
    .write = WriteModernBert,
};

}  // namespace cloze
