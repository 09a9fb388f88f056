// ALBERT (Lan et al. 2020): layers that share their blocks, embeddings of their own size.
#include "core/base/text.h"
#include "encoder/families/families.h"

namespace cloze {
namespace {

#define BLOCK "@encoder.albert_layer_groups.#.albert_layers.&."
constexpr RoleName kAlbertNames[] = {
    {Role::kWordEmbeddings, "@embeddings.word_embeddings"},
    {Role::kPositionEmbeddings, "@embeddings.position_embeddings"},
    {Role::kTokenTypeEmbeddings, "@embeddings.token_type_embeddings"},
    {Role::kEmbeddingsNorm, "@embeddings.LayerNorm"},
    {Role::kEmbeddingsProjection, "@encoder.embedding_hidden_mapping_in"},
    {Role::kQuery, BLOCK "attention.query"},
    {Role::kKey, BLOCK "attention.key"},
    {Role::kValue, BLOCK "attention.value"},
    {Role::kAttentionOutput, BLOCK "attention.dense"},
    {Role::kAttentionNorm, BLOCK "attention.LayerNorm"},
    {Role::kIntermediate, BLOCK "ffn"},
    {Role::kOutput, BLOCK "ffn_output"},
    {Role::kFeedForwardNorm, BLOCK "full_layer_layer_norm"},
    {Role::kTransform, "predictions.dense"},
    {Role::kTransformNorm, "predictions.LayerNorm"},
    {Role::kDecoder, "predictions.decoder"},
    {Role::kDecoderBias, "predictions"},
    {Role::kPooler, "@pooler"},
    {Role::kPooledOutput, "classifier"},
};
#undef BLOCK

constexpr absl::string_view kAlbertMembers[] = {
    "down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"};

// Further defaults of transformers; new models have dropout.
void ReadAlbert(JsonFields& /*fields*/, ModelConfig* config) {
  config->dropout = config->attention.dropout = 0;
  config->classifier_dropout = 0.1f;
}

void WriteAlbert(const ModelConfig& config, Json* json) {
  (*json)["classifier_dropout_prob"] =
      Decimal(config.classifier_dropout < 0 ? config.dropout : config.classifier_dropout);
}

}  // namespace

constinit const Family kAlbert = {
    .model_type = "albert",
    .classes = "Albert",
    .prefix = "albert.",
    .architecture = {.embeddings = {.size = 128, .projected = true},
        .mlp = {.activation = ActivationKind::kGeluTanh},
        .sharing = {.groups = 1}},
    .in_spec = EncoderSpec::ALBERT,
    .keys = {.classifier_dropout = "classifier_dropout_prob",
        .embedding = "embedding_size",
        .groups = "num_hidden_groups",
        .inner = "inner_group_num"},
    .names = {kAlbertNames},
    .members = kAlbertMembers,
    .read = ReadAlbert,
    .write = WriteAlbert,
};

}  // namespace cloze
