// GPT-2 (Radford et al. 2019), a decoder: tokens see those before them. Norms before attention and
// MLP, and no norm of the embeddings. Folders hold the weights of linear layers transposed.
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kGpt2Names[] = {
    {Role::kWordEmbeddings, "@wte"},
    {Role::kPositionEmbeddings, "@wpe"},
    {Role::kAttentionNorm, "@h.#.ln_1"},
    {Role::kQueryKeyValue, "@h.#.attn.c_attn"},
    {Role::kAttentionOutput, "@h.#.attn.c_proj"},
    {Role::kFeedForwardNorm, "@h.#.ln_2"},
    {Role::kIntermediate, "@h.#.mlp.c_fc"},
    {Role::kOutput, "@h.#.mlp.c_proj"},
    {Role::kFinalNorm, "@ln_f"},
    {Role::kDecoder, "lm_head"},
};

constexpr absl::string_view kGpt2Members[] = {"scale_attn_weights",
    "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "n_ctx", "embd_pdrop",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj"};

void ReadGpt2(JsonFields& fields, ModelConfig* config) {
  // Further defaults of transformers.
  config->positions.count = 1024;
  config->end_id = 50256;
  if (!fields.Bool("scale_attn_weights", true))
    fields.Fail("scale_attn_weights", "false: expected true (not supported)");
  if (fields.Bool("scale_attn_by_inverse_layer_idx", false))
    fields.Fail("scale_attn_by_inverse_layer_idx", "true: expected false (not supported)");
  fields.Integer("n_embd", true, 1, kMaxHidden, &config->hidden);
  config->intermediate = 4 * config->hidden;  // unless n_inner says otherwise
  if (fields.IsNull("eos_token_id")) config->end_id = -1;
  fields.Integer("eos_token_id", false, 0, kMaxTokenId, &config->end_id);
  fields.AllowValues("forced_bos_token_id", {nullptr});
  ReadGeneration(fields, &config->generation);
}

void WriteGpt2(const ModelConfig& config, Json* json) {
  Json& out = *json;
  out["embd_pdrop"] = Decimal(config.dropout);
  out["bos_token_id"] = out["eos_token_id"] = nullptr;
  if (config.end_id >= 0) out["bos_token_id"] = out["eos_token_id"] = config.end_id;
  Json generation;
  WriteGeneration(config.generation, &generation);
  for (const auto& [key, value] : generation.items())
    if (!value.is_null()) out[key] = value;
}

}  // namespace

constinit const Family kGpt2 = {
    .model_type = "gpt2",
    .classes = "GPT2",
    .prefix = "transformer.",
    .transposed = true,
    .architecture = {.embeddings = {.token_types = 0, .norm = false},
        .attention = {.causal = true},
        .mlp = {.activation = ActivationKind::kGeluTanh},
        .norm = {.place = NormPlace::kBefore, .epsilon = 1e-5f},
        .initializer = {.scaled_outputs = true}},
    .head = {.transform = false, .output_bias = OutputBias::kNone},
    .in_spec = EncoderSpec::GPT2,
    .keys = {.hidden = "n_embd",
        .layers = "n_layer",
        .heads = "n_head",
        .intermediate = "n_inner",
        .positions = "n_positions",
        .token_types = nullptr,
        .activation = "activation_function",
        .norm_epsilon = "layer_norm_epsilon",
        .dropout = "resid_pdrop",
        .attention_dropout = "attn_pdrop",
        .classifier_dropout = nullptr},
    .names = {kGpt2Names},
    .members = kGpt2Members,
    .read = ReadGpt2,
    .write = WriteGpt2,
};

}  // namespace cloze
