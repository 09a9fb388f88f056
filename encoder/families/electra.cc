// ELECTRA (Clark et al. 2020), generator and discriminator: BERT with embeddings of their own size.
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kElectraHeadNames[] = {
    {Role::kEmbeddingsProjection, "@embeddings_project"},
    {Role::kTransform, "generator_predictions.dense"},
    {Role::kTransformNorm, "generator_predictions.LayerNorm"},
    {Role::kDecoder, "generator_lm_head"},
    {Role::kDecoderBias, "generator_lm_head"},
    {Role::kDiscriminator, "discriminator_predictions.dense"},
    {Role::kDiscriminatorOutput, "discriminator_predictions.dense_prediction"},
    {Role::kPooler, "classifier.dense"},
    {Role::kPooledOutput, "classifier.out_proj"},
};

constexpr absl::string_view kElectraMembers[] = {
    "summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"};

}  // namespace

constinit const Family kElectra = {
    .model_type = "electra",
    .classes = "Electra",
    .prefix = "electra.",
    .joined = {.can_be_decoder = true},
    .architecture = {.embeddings = {.size = 128}},
    .head = {.transform_activation = ActivationKind::kGelu,
        .pooler_activation = ActivationKind::kGelu,
        .dropout_before_pooler = true},
    .in_spec = EncoderSpec::ELECTRA,
    .keys = {.embedding = "embedding_size"},
    .names = {kElectraHeadNames, kBertEncoderNames},
    .members = kElectraMembers,
};

}  // namespace cloze
