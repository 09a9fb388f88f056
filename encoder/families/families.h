// The table of families, and config.json.
#ifndef CLOZE_ENCODER_FAMILIES_FAMILIES_H_
#define CLOZE_ENCODER_FAMILIES_FAMILIES_H_

#include <string>

#include "encoder/modules/config.h"

namespace cloze {

// The family of config.json's model_type, or null.
const Family* FindFamily(absl::string_view model_type);

// Parses config.json. `path` only names the file in messages. kData, with the member's name, for
// everything that the encoder cannot compute: an unknown model_type or activation, relative
// positions, regression of several numbers, sizes out of range, hidden not divisible by heads.
absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path);

// Returns config.json as transformers reads it. What no class of transformers can express is under
// "cloze": how texts are read, a sequence classifier without pooler, and fixed sinusoids.
std::string FormatConfig(const ModelConfig& config);

// Compares the sizes of two models: "" or the first difference, as "hidden_size is 8, expected 16".
std::string CompareSizes(const ModelConfig& config, const ModelConfig& expected);

// The name of our parameter for a tensor of a model folder: adds the prefix that bare encoders lack
// and replaces LayerNorm.gamma and beta. "" for buffers, which are no parameters.
std::string CanonicalName(const std::string& tensor, const Family& family);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FAMILIES_FAMILIES_H_
