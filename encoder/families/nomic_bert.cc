// NomicBERT (Nussbaum et al. 2024): BERT with rotary positions, gated MLP and no biases in blocks.
// Names are those of transformers; the layout of the Hub, with one matrix of queries, keys and
// values, and members of GPT-2 in config.json, is read as well.
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kNomicBertNames[] = {
    {Role::kWordEmbeddings, "@embeddings.word_embeddings"},
    {Role::kTokenTypeEmbeddings, "@embeddings.token_type_embeddings"},
    {Role::kEmbeddingsNorm, "@embeddings.LayerNorm"},
    {Role::kQuery, "@layers.#.self_attn.q_proj"},
    {Role::kKey, "@layers.#.self_attn.k_proj"},
    {Role::kValue, "@layers.#.self_attn.v_proj"},
    {Role::kAttentionOutput, "@layers.#.self_attn.o_proj"},
    {Role::kAttentionNorm, "@layers.#.post_attention_layernorm"},
    {Role::kGate, "@layers.#.mlp.gate_proj"},
    {Role::kIntermediate, "@layers.#.mlp.up_proj"},
    {Role::kOutput, "@layers.#.mlp.down_proj"},
    {Role::kFeedForwardNorm, "@layers.#.post_mlp_layernorm"},
    {Role::kTransform, "cls.predictions.transform.dense"},
    {Role::kTransformNorm, "cls.predictions.transform.layer_norm"},
    {Role::kDecoder, "cls.predictions.decoder"},
    {Role::kDecoderBias, "cls.predictions"},
    {Role::kPooler, "@pooler.dense"},
    {Role::kPooledOutput, "classifier"},
};

constexpr std::pair<const char*, const char*> kOldNames[] = {{"encoder.layers.", "layers."},
    {"emb_ln.", "embeddings.LayerNorm."}, {".attn.out_proj.", ".self_attn.o_proj."},
    {".mlp.fc11.", ".mlp.up_proj."}, {".mlp.fc12.", ".mlp.gate_proj."},
    {".mlp.fc2.", ".mlp.down_proj."}, {".norm1.", ".post_attention_layernorm."},
    {".norm2.", ".post_mlp_layernorm."}};
constexpr std::pair<const char*, const char*> kOldKeys[] = {{"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"}, {"n_head", "num_attention_heads"},
    {"n_inner", "intermediate_size"}, {"n_positions", "max_position_embeddings"},
    {"layer_norm_epsilon", "layer_norm_eps"}, {"resid_pdrop", "hidden_dropout_prob"},
    {"attn_pdrop", "attention_probs_dropout_prob"}};

constexpr absl::string_view kNomicBertMembers[] = {"prenorm", "parallel_block",
    "parallel_block_tied_norm", "use_rms_norm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias",
    "causal", "rotary_emb_interleaved", "rotary_emb_scale_base", "rotary_scaling_factor",
    "rotary_emb_fraction", "moe_every_n_layers", "activation_function", "rotary_emb_base",
    "rope_theta", "rope_parameters", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn", "auto_map", "dense_seq_output", "embd_pdrop", "ffn_div",
    "fused_bias_fc", "fused_dropout_add_ln", "max_trained_positions", "pad_vocab_size_multiple",
    "use_flash_attn", "use_xentropy", "moe_top_k", "moe_impl", "moe_normalize_expert_weights",
    "moe_resid_pdrop", "num_experts", "num_shared_experts", "router_aux_loss_coef",
    "expert_choice_router", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
    "summary_type", "summary_use_proj"};

void ReadNomicBert(JsonFields& fields, ModelConfig* config) {
  for (const char* option : {"prenorm", "parallel_block", "use_rms_norm", "qkv_proj_bias",
           "mlp_fc1_bias", "mlp_fc2_bias", "causal", "rotary_emb_interleaved",
           "parallel_block_tied_norm", "scale_attn_by_inverse_layer_idx"}) {
    if (fields.Bool(option, false)) fields.Fail(option, "true: expected false (not supported)");
  }
  for (const char* option : {"rotary_emb_scale_base", "rotary_scaling_factor"}) {
    if (fields.Find(option) != nullptr) fields.Fail(option, "expected null (not supported)");
  }
  fields.AllowValues("scale_attn_weights", {nullptr, true});
  float fraction = 1;
  fields.Number("rotary_emb_fraction", 1, 1, &fraction);
  int32_t experts = 0;
  fields.Integer("moe_every_n_layers", false, 0, 0, &experts);
  if (const std::string act = fields.String("activation_function"); act != "swiglu" && !act.empty())
    fields.Fail("activation_function", Quote(act), ": expected \"swiglu\"");
  for (const char* base : {"rotary_emb_base", "rope_theta"})
    fields.Number(base, 2, 1e9, &config->positions.rotary_base[0]);
  const Json* rope = fields.Find("rope_parameters");
  ReadRotary(fields, "rope_parameters", rope == nullptr ? Json() : *rope,
      &config->positions.rotary_base[0]);
}

void WriteNomicBert(const ModelConfig& config, Json* json) {
  (*json)["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", Decimal(config.positions.rotary_base[0])}};
}

}  // namespace

constinit const Family kNomicBert = {
    .model_type = "nomic_bert",
    .classes = "NomicBert",
    .prefix = "nomic_bert.",
    .architecture = {.positions = {.kind = Positions::kRotary, .rotary_base = {1000, 10000}},
        .attention = {.dropout = 0},
        .mlp = {.activation = ActivationKind::kSilu, .gated = true},
        .biases = false,
        .dropout = 0},
    .names = {kNomicBertNames},
    .old_names = kOldNames,
    .old_keys = kOldKeys,
    .query_key_value = "@layers.#.attn.Wqkv.weight",
    .members = kNomicBertMembers,
    .read = ReadNomicBert,
    .write = WriteNomicBert,
};

}  // namespace cloze
