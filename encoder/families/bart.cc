// BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018): a decoder and its encoder,
// which share their word embeddings. BART has learned positions, the first two of which are not
// used, and a norm of the embeddings; Marian has fixed positions and scaled embeddings. Dropout
// behind activations (activation_dropout) is not computed.
#include <cmath>

#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kEncoderNames[] = {
    {Role::kWordEmbeddings, "@shared"},
    {Role::kPositionEmbeddings, "@encoder.embed_positions"},
    {Role::kQuery, "@encoder.layers.#.self_attn.q_proj"},
    {Role::kKey, "@encoder.layers.#.self_attn.k_proj"},
    {Role::kValue, "@encoder.layers.#.self_attn.v_proj"},
    {Role::kAttentionOutput, "@encoder.layers.#.self_attn.out_proj"},
    {Role::kAttentionNorm, "@encoder.layers.#.self_attn_layer_norm"},
    {Role::kIntermediate, "@encoder.layers.#.fc1"},
    {Role::kOutput, "@encoder.layers.#.fc2"},
    {Role::kFeedForwardNorm, "@encoder.layers.#.final_layer_norm"},
};
constexpr RoleName kDecoderNames[] = {
    {Role::kWordEmbeddings, "@shared"},
    {Role::kPositionEmbeddings, "@decoder.embed_positions"},
    {Role::kQuery, "@decoder.layers.#.self_attn.q_proj"},
    {Role::kKey, "@decoder.layers.#.self_attn.k_proj"},
    {Role::kValue, "@decoder.layers.#.self_attn.v_proj"},
    {Role::kAttentionOutput, "@decoder.layers.#.self_attn.out_proj"},
    {Role::kAttentionNorm, "@decoder.layers.#.self_attn_layer_norm"},
    {Role::kCrossQuery, "@decoder.layers.#.encoder_attn.q_proj"},
    {Role::kCrossKey, "@decoder.layers.#.encoder_attn.k_proj"},
    {Role::kCrossValue, "@decoder.layers.#.encoder_attn.v_proj"},
    {Role::kCrossOutput, "@decoder.layers.#.encoder_attn.out_proj"},
    {Role::kCrossNorm, "@decoder.layers.#.encoder_attn_layer_norm"},
    {Role::kIntermediate, "@decoder.layers.#.fc1"},
    {Role::kOutput, "@decoder.layers.#.fc2"},
    {Role::kFeedForwardNorm, "@decoder.layers.#.final_layer_norm"},
    {Role::kDecoder, "lm_head"},
    {Role::kDecoderBias, "final_logits_bias"},
};
constexpr RoleName kBartEncoderNorm[] = {{Role::kEmbeddingsNorm, "@encoder.layernorm_embedding"}},
                   kBartDecoderNorm[] = {{Role::kEmbeddingsNorm, "@decoder.layernorm_embedding"}};

constexpr const char* kCopies[] = {"@encoder.embed_tokens.weight", "@decoder.embed_tokens.weight"};

constexpr absl::string_view kBartMembers[] = {"d_model", "init_std", "scale_embedding",
    "share_encoder_decoder_embeddings", "normalize_before", "normalize_embedding",
    "add_final_layer_norm", "add_bias_logits", "do_blenderbot_90_layernorm",
    "static_position_embeddings", "extra_pos_embeddings", "force_bos_token_to_be_generated",
    "decoder_vocab_size", "activation_dropout", "classif_dropout", "classifier_dropout",
    "encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "save_step", "replacing_rate",
    "student_encoder_layers", "student_decoder_layers"};

void ReadBartOrMarian(JsonFields& fields, ModelConfig* config) {
  config->end_id = 2;  // the default of transformers
  for (const char* other : {"normalize_before", "add_final_layer_norm", "add_bias_logits",
           "do_blenderbot_90_layernorm"}) {
    if (fields.Bool(other, false)) fields.Fail(other, "true: expected false (not supported)");
  }
  for (const char* shared : {"share_encoder_decoder_embeddings", "tie_word_embeddings"}) {
    if (!fields.Bool(shared, true)) fields.Fail(shared, "false: expected true (not supported)");
  }
  fields.Integer("d_model", true, 1, kMaxHidden, &config->hidden);
  fields.Number("init_std", 0, 100, &config->initializer.range);
  if (fields.Bool("scale_embedding", false))
    config->embeddings.scale = std::sqrt(static_cast<float>(config->hidden));
  GenerationConfig& generation = config->generation;
  fields.Integer("eos_token_id", false, 0, kMaxTokenId, &config->end_id);
  fields.Integer("decoder_start_token_id", true, 0, kMaxTokenId, &generation.start_id);
  ReadGeneration(fields, &generation);
  if (fields.Bool("force_bos_token_to_be_generated", false) && generation.forced_first_id < 0)
    fields.Fail("force_bos_token_to_be_generated", "true: expected forced_bos_token_id, too");
}

void ReadBart(JsonFields& fields, ModelConfig* config) {
  ReadBartOrMarian(fields, config);
  fields.AllowValues("normalize_embedding", {nullptr, true});
  fields.AllowValues("static_position_embeddings", {nullptr, false});
  fields.AllowValues("extra_pos_embeddings", {nullptr, 2});
}
void ReadMarian(JsonFields& fields, ModelConfig* config) {
  ReadBartOrMarian(fields, config);
  fields.AllowValues("normalize_embedding", {nullptr, false});
  fields.AllowValues("static_position_embeddings", {nullptr, true});
}

void WriteBartOrMarian(const ModelConfig& config, Json* json) {
  Json& out = *json;
  const auto id = [](int32_t id) { return id < 0 ? Json() : Json(id); };
  const GenerationConfig& generation = config.generation;
  out["is_encoder_decoder"] = true;
  out["max_position_embeddings"] = config.max_tokens();
  out["scale_embedding"] = config.embeddings.scale != 1;
  out["init_std"] = Decimal(config.initializer.range);
  out["activation_dropout"] = 0.0;
  out["eos_token_id"] = id(config.end_id);
  out["bos_token_id"] = nullptr;
  out["decoder_start_token_id"] = id(generation.start_id);
  WriteGeneration(generation, json);
}

constexpr ConfigKeys KeysOf(const char* layers, const char* heads, const char* intermediate) {
  return {.hidden = "d_model",
      .layers = layers,
      .heads = heads,
      .intermediate = intermediate,
      .token_types = nullptr,
      .activation = "activation_function",
      .norm_epsilon = nullptr,
      .dropout = "dropout",
      .attention_dropout = "attention_dropout",
      .classifier_dropout = nullptr};
}
constexpr ConfigKeys kEncoderKeys =
    KeysOf("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim");
constexpr ConfigKeys kDecoderKeys =
    KeysOf("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim");

constexpr HeadTraits kDecoderHead = {.transform = false, .output_bias = OutputBias::kFixed};

constinit const Family kBartEncoder = {.model_type = "bart",
    .classes = "Bart",
    .prefix = "model.",
    .keys = kEncoderKeys,
    .names = {kBartEncoderNorm, kEncoderNames}};
constinit const Family kMarianEncoder = {.model_type = "marian",
    .classes = "Marian",
    .prefix = "model.",
    .keys = kEncoderKeys,
    .names = {kEncoderNames}};

}  // namespace

constinit const Family kBart = {
    .model_type = "bart",
    .classes = "Bart",
    .prefix = "model.",
    .joined = {.encoder = &kBartEncoder, .class_name = "BartForConditionalGeneration"},
    .architecture = {.embeddings = {.token_types = 0},
        .positions = {.count = 1024, .offset = 2},
        .attention = {.causal = true, .cross = true},
        .norm = {.epsilon = 1e-5f}},
    .head = kDecoderHead,
    .keys = kDecoderKeys,
    .names = {kBartDecoderNorm, kDecoderNames},
    .members = kBartMembers,
    .word_embedding_copies = kCopies,
    .read = ReadBart,
    .write = WriteBartOrMarian,
};
constinit const Family kMarian = {
    .model_type = "marian",
    .classes = "Marian",
    .prefix = "model.",
    .joined = {.encoder = &kMarianEncoder, .class_name = "MarianMTModel"},
    .architecture = {.embeddings = {.token_types = 0, .norm = false},
        .positions = {.kind = Positions::kSinesFirst, .count = 1024},
        .attention = {.causal = true, .cross = true},
        .norm = {.epsilon = 1e-5f}},
    .head = kDecoderHead,
    .keys = kDecoderKeys,
    .names = {kDecoderNames},
    .members = kBartMembers,
    .word_embedding_copies = kCopies,
    .read = ReadMarian,
    .write = WriteBartOrMarian,
};

}  // namespace cloze
