// The parts of a tokenizer's files that byte-level BPE has for itself; private to core/text.
#ifndef CLOZE_CORE_TEXT_FILES_BYTE_LEVEL_JSON_H_
#define CLOZE_CORE_TEXT_FILES_BYTE_LEVEL_JSON_H_

#include <map>
#include <string>

#include "core/text/files/json_reader.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

// Is the model of this tokenizer.json a BPE?
bool IsByteLevel(const Json& json);

// Model, pre-tokenizer and post-processor (RobertaProcessing, or a template of its shape). kData
// naming what differs from RoBERTa's, a merge that is not two tokens, or one whose result is no
// token.
absl::Status ReadByteLevel(const std::string& path, const Json& json, TokenizerData* data);

// tokenizer.json of `data`, whose added tokens and vocabulary are given; `ids` of the special
// tokens.
std::string ByteLevelJson(const TokenizerData& data, const std::map<std::string, int32_t>& ids,
    nlohmann::ordered_json added, nlohmann::ordered_json vocab);

// tokenizer_config.json, without the names of special tokens but for those of bos and eos.
nlohmann::ordered_json ByteLevelConfig(const TokenizerData& data, int64_t max_length);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_BYTE_LEVEL_JSON_H_
