#include "core/text/files/json_reader.h"

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {
namespace {

constexpr int64_t kMaxJsonBytes = int64_t{512} << 20;
constexpr int kMaxDepth = 64;

// Is `text` nested deeper than kMaxDepth? Looks at brackets outside strings only, so that no parser
// has to recurse.
bool TooDeep(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return Error(Exit::kData, absl::StrCat(QuotePath(path), ": ", what));
}

absl::StatusOr<Json> ReadJsonObject(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxJsonBytes));
  if (TooDeep(text)) return Wrong(path, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || absl::StrContains(text, '\0')) return Wrong(path, "not valid JSON");
  if (!json.is_object()) return Wrong(path, "a JSON object expected");
  return json;
}

const Json& Member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto at = object.find(key);
  return at == object.end() ? kNull : *at;
}

std::string StringOf(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}
bool BoolOf(const Json& value, bool otherwise) {
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

std::string TokenOf(const Json& value) {
  return StringOf(value.is_object() ? Member(value, "content") : value);
}

absl::Status CheckType(
    const std::string& path, const Json& json, const char* component, const char* expected) {
  const std::string type = StringOf(Member(Member(json, component), "type"));
  if (type == expected) return absl::OkStatus();
  return Wrong(path, absl::StrCat(component, ": type ", type.empty() ? "missing" : Quote(type),
                         ", only ", expected, " is supported"));
}

absl::Status ReadVocabObject(const std::string& path, const char* what, const Json& vocab,
    std::vector<std::string>* tokens) {
  if (!vocab.is_object())
    return Wrong(path, absl::StrCat(what, ": an object of tokens and ids expected"));
  if (vocab.size() > kMaxTokens)
    return Error(
        Exit::kLimit, absl::StrCat(QuotePath(path), ": more than ", kMaxTokens, " tokens"));
  tokens->assign(vocab.size(), "");
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab.size()) {
      return Wrong(path,
          absl::StrCat(what, ": id of ", Quote(token), " must be below the number of tokens, ",
              vocab.size(), "; ids must have no gaps"));
    }
    std::string& slot = (*tokens)[id.get<uint64_t>()];
    if (!slot.empty())
      return Wrong(
          path, absl::StrCat(what, ": ", Quote(token), " and ", Quote(slot), " have the same id"));
    slot = token;
  }
  return absl::OkStatus();
}

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cloze
