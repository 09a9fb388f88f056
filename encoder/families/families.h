// The table of families, to which a new one is added, and reading and writing config.json.
#ifndef CLOZE_ENCODER_FAMILIES_FAMILIES_H_
#define CLOZE_ENCODER_FAMILIES_FAMILIES_H_

#include <string>

#include "encoder/families/model_config.h"

namespace cloze {

extern const Family kBert, kRoberta, kRobertaPreLayerNorm, kXlmRoberta, kCamembert, kDistilBert,
    kElectra, kAlbert, kModernBert, kNomicBert, kMpnet, kDeberta, kGpt2, kBart, kMarian;
inline constexpr const Family* kFamilies[] = {&kBert, &kRoberta, &kRobertaPreLayerNorm,
    &kXlmRoberta, &kCamembert, &kDistilBert, &kElectra, &kAlbert, &kModernBert, &kNomicBert,
    &kMpnet, &kDeberta, &kGpt2, &kBart, &kMarian};

// The model_type of an encoder-decoder that began as two models.
inline constexpr const char* kEncoderDecoderType = "encoder-decoder";
// Returns the encoder-decoder (Rothe et al. 2020) of two encoders. `encoder` is of any family;
// `decoder` is of one with joined.can_be_decoder. The result is the decoder's description, with the
// head kSequenceToSequence, `encoder`, and without GenerationConfig. kMismatch if
// they cannot be one model.
absl::StatusOr<ModelConfig> JoinEncoderDecoder(ModelConfig encoder, ModelConfig decoder);
// ParseConfig and FormatConfig of such an encoder-decoder.
absl::StatusOr<ModelConfig> ParseEncoderDecoder(const Json& root, absl::string_view path);
Json FormatEncoderDecoder(const ModelConfig& config);

// BERT's names of encoder modules, which other families share.
extern const RoleName kBertEncoderNames[12];

// Returns the family with this model_type, or null.
const Family* FindFamily(absl::string_view model_type);

// Returns the description of a new encoder, without vocab, head and labels; pad_id is 0. Sizes that
// are not set come from FillSizes. kSpec when `hidden` is not divisible by `heads` or a size of a
// CUSTOM preset is missing.
absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& spec);

// Parses config.json; `path` is for messages. kData, with the member's name, for models that cannot
// be computed: unknown model_type or activation, position_embedding_type other than absolute, sizes
// out of range, hidden not divisible by heads.
absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path);

// The ids of special tokens in config.json that only transformers uses.
inline constexpr const char* kSpecialIds[] = {
    "bos_token_id", "cls_token_id", "eos_token_id", "sep_token_id"};
inline constexpr int64_t kMaxTokenId = 100'000'000;
inline constexpr int32_t kMaxLayers = 1024, kMaxHidden = 16384;

// Records settings of generation that no option replaces and that are not neutral.
void CheckSearch(JsonFields& fields);
// Returns the members of config.json and generation_config.json of all families that readers know
// or that cannot change a result.
std::vector<absl::string_view> CommonMembers();
// Records a member of config.json, or of generation_config.json (`family` is null), that may change
// results and that no reader knows. Requires that all others have been read.
void CheckMembers(JsonFields& fields, const Family* family);

// Reads and writes GenerationConfig without start_id.
void ReadGeneration(JsonFields& fields, GenerationConfig* generation);
// Records an error if an id for generation is not in a vocabulary of `vocab` tokens.
void CheckTokenIds(JsonFields& fields, const ModelConfig& config, int32_t vocab);
void WriteGeneration(const GenerationConfig& generation, Json* json);

// Reads the class and the labels of the head, and the member "cloze". Requires config->family.
void ReadHead(JsonFields& fields, ModelConfig* config);
// Writes the same into *json.
void WriteHead(const ModelConfig& config, Json* json);

// Reads `rope`, an object of transformers' rotary positions, or null: rope_theta into *base. Other
// types of rotary positions than "default" are an error of `field`.
void ReadRotary(JsonFields& fields, const char* field, const Json& rope, float* base);

// Reads quantization_config as compressed-tensors writes it: weights int8 per channel, activations
// int8 per token. For other schemes records an error of that field. Also reads config->original.
void ReadQuantization(JsonFields& fields, ModelConfig* config);
// Writes the same into *to. Requires config.int8.
void WriteQuantization(const ModelConfig& config, Json* to);

// Returns config.json for transformers. With config.int8 it describes a quantized folder. The
// member "cloze" has what transformers cannot express: how texts are read, a sequence classifier
// without pooler, a CRF, fixed sinusoids.
std::string FormatConfig(const ModelConfig& config);

// Returns the first difference of sizes, for example "hidden_size is 8, expected 16", or "".
std::string CompareSizes(const ModelConfig& config, const ModelConfig& expected);

// Returns the name of our parameter for a tensor in a folder: applies old_names and aliases of the
// family, adds the prefix that bare encoders lack, and replaces LayerNorm.gamma and beta. Returns
// "" for buffers.
std::string CanonicalName(const std::string& tensor, const Family& family);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FAMILIES_FAMILIES_H_
