// Helpers for Hugging Face's JSON files. Private to this folder.
#ifndef CLOZE_CORE_TEXT_FILES_JSON_READER_H_
#define CLOZE_CORE_TEXT_FILES_JSON_READER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

// Returns kData: "path: what".
absl::Status Wrong(const std::string& path, absl::string_view what);

// Reads a file of at most 512 MB with ParseJson.
absl::StatusOr<Json> ReadJsonObject(const std::string& path);

// Return the value, or "" and `otherwise` if it has another type.
std::string StringOf(const Json& value);
bool BoolOf(const Json& value, bool otherwise);

// Checks json[component].type.
absl::Status CheckType(
    const std::string& path, const Json& json, const char* component, const char* expected);

// Reads an object of tokens and their ids, which must be 0 ... n - 1. `what` names it in messages.
absl::Status ReadVocabObject(
    const std::string& path, const char* what, const Json& vocab, std::vector<std::string>* tokens);
OrderedJson VocabObject(const std::vector<std::string>& tokens);

// Reads "cls" and "sep" of a BertProcessing or RobertaProcessing, pairs of a token and its id.
absl::Status ReadClsAndSep(const std::string& path, const Json& processor, SpecialNames* names);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_JSON_READER_H_
