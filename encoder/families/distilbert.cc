// DistilBERT (Sanh et al. 2019): BERT without token types and with half its layers.
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kDistilBertNames[] = {
    {Role::kWordEmbeddings, "@embeddings.word_embeddings"},
    {Role::kPositionEmbeddings, "@embeddings.position_embeddings"},
    {Role::kEmbeddingsNorm, "@embeddings.LayerNorm"},
    {Role::kQuery, "@transformer.layer.#.attention.q_lin"},
    {Role::kKey, "@transformer.layer.#.attention.k_lin"},
    {Role::kValue, "@transformer.layer.#.attention.v_lin"},
    {Role::kAttentionOutput, "@transformer.layer.#.attention.out_lin"},
    {Role::kAttentionNorm, "@transformer.layer.#.sa_layer_norm"},
    {Role::kIntermediate, "@transformer.layer.#.ffn.lin1"},
    {Role::kOutput, "@transformer.layer.#.ffn.lin2"},
    {Role::kFeedForwardNorm, "@transformer.layer.#.output_layer_norm"},
    {Role::kTransform, "vocab_transform"},
    {Role::kTransformNorm, "vocab_layer_norm"},
    {Role::kDecoder, "vocab_projector"},
    {Role::kDecoderBias, "vocab_projector"},
    {Role::kPooler, "pre_classifier"},
    {Role::kPooledOutput, "classifier"},
};

constexpr absl::string_view kDistilBertMembers[] = {
    "sinusoidal_pos_embds", "qa_dropout", "tie_weights_"};

void ReadDistilBert(JsonFields& fields, ModelConfig* config) {
  config->classifier_dropout = 0.2f;  // the default of transformers
  if (fields.Bool("sinusoidal_pos_embds", false)) config->positions.kind = Positions::kSinusoidal;
}

void WriteDistilBert(const ModelConfig& config, Json* json) {
  (*json)["sinusoidal_pos_embds"] = config.positions.kind == Positions::kSinusoidal;
  const bool has_rate = config.classifier_dropout >= 0;
  (*json)["seq_classif_dropout"] = Decimal(has_rate ? config.classifier_dropout : config.dropout);
}

}  // namespace

constinit const Family kDistilBert = {
    .model_type = "distilbert",
    .classes = "DistilBert",
    .prefix = "distilbert.",
    .architecture = {.embeddings = {.token_types = 0}},
    .head = {.pooler_activation = ActivationKind::kRelu, .sequence_dropout_only = true},
    .keys = {.hidden = "dim",
        .layers = "n_layers",
        .heads = "n_heads",
        .intermediate = "hidden_dim",
        .token_types = nullptr,
        .activation = "activation",
        .norm_epsilon = nullptr,
        .dropout = "dropout",
        .attention_dropout = "attention_dropout",
        .classifier_dropout = "seq_classif_dropout"},
    .names = {kDistilBertNames},
    .members = kDistilBertMembers,
    .read = ReadDistilBert,
    .write = WriteDistilBert,
};

}  // namespace cloze
