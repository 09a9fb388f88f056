// RoBERTa (Liu et al. 2019), its variant with norms before attention and MLP, and XLM-RoBERTa
// (Conneau et al. 2020) and CamemBERT (Martin et al. 2020), which differ in their vocabularies.
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kRobertaHeadNames[] = {
    {Role::kTransform, "lm_head.dense"},
    {Role::kTransformNorm, "lm_head.layer_norm"},
    {Role::kDecoder, "lm_head.decoder"},
    {Role::kDecoderBias, "lm_head"},
    {Role::kPooler, "classifier.dense"},
    {Role::kPooledOutput, "classifier.out_proj"},
};

// They precede BERT's names of the same roles.
constexpr RoleName kPreNormNames[] = {
    {Role::kAttentionNorm, "@encoder.layer.#.attention.LayerNorm"},
    {Role::kFeedForwardNorm, "@encoder.layer.#.intermediate.LayerNorm"},
    {Role::kFinalNorm, "@LayerNorm"},
};

constexpr HeadTraits kRobertaHead = {
    .transform_activation = ActivationKind::kGelu, .dropout_before_pooler = true};

constexpr Family RobertaOf(const char* model_type, const char* classes) {
  return {
      .model_type = model_type,
      .classes = classes,
      .prefix = "roberta.",
      .joined = {.can_be_decoder = true},
      .architecture = {.positions = {.after_pad = true}},
      .head = kRobertaHead,
      .names = {kRobertaHeadNames, kBertEncoderNames},
  };
}

}  // namespace

constinit const Family kRoberta = RobertaOf("roberta", "Roberta");
constinit const Family kXlmRoberta = RobertaOf("xlm-roberta", "XLMRoberta");
constinit const Family kCamembert = RobertaOf("camembert", "Camembert");

constinit const Family kRobertaPreLayerNorm = {
    .model_type = "roberta-prelayernorm",
    .classes = "RobertaPreLayerNorm",
    .prefix = "roberta_prelayernorm.",
    .architecture = {.positions = {.after_pad = true}, .norm = {.place = NormPlace::kBefore}},
    .head = kRobertaHead,
    .in_spec = EncoderSpec::BERT,  // with norms before attention and MLP
    .names = {kPreNormNames, kRobertaHeadNames, kBertEncoderNames},
};

}  // namespace cloze
