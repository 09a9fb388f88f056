// Reading JSON that nobody vouches for; private to core/text.
#ifndef CLOZE_CORE_TEXT_FILES_JSON_READER_H_
#define CLOZE_CORE_TEXT_FILES_JSON_READER_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

using Json = nlohmann::json;

// kData: "path: what".
absl::Status Wrong(const std::string& path, absl::string_view what);

// A file of at most 512 MB that holds one object, nested at most 64 deep.
absl::StatusOr<Json> ReadJsonObject(const std::string& path);

// Member `key` of an object; a JSON null when there is none.
const Json& Member(const Json& object, const char* key);

// The value, or "" and `otherwise` when it is of another type.
std::string StringOf(const Json& value);
bool BoolOf(const Json& value, bool otherwise);

// A special token in a config: a string, or an object with "content".
std::string TokenOf(const Json& value);

// Is json[component].type what is expected?
absl::Status CheckType(
    const std::string& path, const Json& json, const char* component, const char* expected);

// An object of tokens and their ids, which have to be 0 ... n - 1. `what` names it in messages.
absl::Status ReadVocabObject(
    const std::string& path, const char* what, const Json& vocab, std::vector<std::string>* tokens);

// Indented, with a line feed at the end.
std::string Dump(const nlohmann::ordered_json& json);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_JSON_READER_H_
