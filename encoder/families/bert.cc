// BERT (Devlin et al. 2019).
#include "encoder/families/families.h"

namespace cloze {

constinit const RoleName kBertEncoderNames[12] = {
    {Role::kWordEmbeddings, "@embeddings.word_embeddings"},
    {Role::kPositionEmbeddings, "@embeddings.position_embeddings"},
    {Role::kTokenTypeEmbeddings, "@embeddings.token_type_embeddings"},
    {Role::kEmbeddingsNorm, "@embeddings.LayerNorm"},
    {Role::kQuery, "@encoder.layer.#.attention.self.query"},
    {Role::kKey, "@encoder.layer.#.attention.self.key"},
    {Role::kValue, "@encoder.layer.#.attention.self.value"},
    {Role::kAttentionOutput, "@encoder.layer.#.attention.output.dense"},
    {Role::kAttentionNorm, "@encoder.layer.#.attention.output.LayerNorm"},
    {Role::kIntermediate, "@encoder.layer.#.intermediate.dense"},
    {Role::kOutput, "@encoder.layer.#.output.dense"},
    {Role::kFeedForwardNorm, "@encoder.layer.#.output.LayerNorm"},
};

namespace {

constexpr RoleName kBertHeadNames[] = {
    {Role::kTransform, "cls.predictions.transform.dense"},
    {Role::kTransformNorm, "cls.predictions.transform.LayerNorm"},
    {Role::kDecoder, "cls.predictions.decoder"},
    {Role::kDecoderBias, "cls.predictions"},
    {Role::kPooler, "@pooler.dense"},
    {Role::kPooledOutput, "classifier"},
};

}  // namespace

constinit const Family kBert = {
    .model_type = "bert",
    .classes = "Bert",
    .prefix = "bert.",
    .joined = {.can_be_decoder = true},
    .in_spec = EncoderSpec::BERT,
    .names = {kBertHeadNames, kBertEncoderNames},
};

}  // namespace cloze
