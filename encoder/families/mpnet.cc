// MPNet (Song et al. 2020): RoBERTa with biases of attention by bucket of distances.
#include "encoder/families/families.h"

namespace cloze {
namespace {

constexpr RoleName kMpNetNames[] = {
    {Role::kRelativePositions, "@encoder.relative_attention_bias"},
    {Role::kQuery, "@encoder.layer.#.attention.attn.q"},
    {Role::kKey, "@encoder.layer.#.attention.attn.k"},
    {Role::kValue, "@encoder.layer.#.attention.attn.v"},
    {Role::kAttentionOutput, "@encoder.layer.#.attention.attn.o"},
    {Role::kAttentionNorm, "@encoder.layer.#.attention.LayerNorm"},
    {Role::kTransform, "lm_head.dense"},
    {Role::kTransformNorm, "lm_head.layer_norm"},
    {Role::kDecoder, "lm_head.decoder"},
    {Role::kDecoderBias, "lm_head"},
    {Role::kPooler, "classifier.dense"},
    {Role::kPooledOutput, "classifier.out_proj"},
};

constexpr absl::string_view kMpNetMembers[] = {"relative_attention_num_buckets"};

constexpr char kBuckets[] = "relative_attention_num_buckets";
constexpr int32_t kBucketCount = 32;  // transformers computes buckets for no other number

void ReadMpNet(JsonFields& fields, ModelConfig* config) {
  fields.Integer(kBuckets, false, kBucketCount, kBucketCount, &config->relative.buckets);
  fields.Integer("pad_token_id", false, 1, 1, &config->pad_id);  // positions start at 2
}

void WriteMpNet(const ModelConfig& config, Json* json) {
  (*json)[kBuckets] = config.relative.buckets;
}

}  // namespace

constinit const Family kMpnet = {
    .model_type = "mpnet",
    .classes = "MPNet",
    .prefix = "mpnet.",
    .architecture = {.embeddings = {.token_types = 0},
        .positions = {.after_pad = true},
        .relative = {.buckets = kBucketCount}},
    .head = {.transform_activation = ActivationKind::kGelu, .dropout_before_pooler = true},
    .keys = {.token_types = nullptr, .classifier_dropout = nullptr},
    .names = {kMpNetNames, kBertEncoderNames},
    .members = kMpNetMembers,
    .read = ReadMpNet,
    .write = WriteMpNet,
};

}  // namespace cloze
