#include "core/text/files/json_reader.h"

#include "absl/strings/match.h"
#include "core/base/file.h"

namespace cloze {
namespace {

constexpr int64_t kMaxJsonBytes = int64_t{512} << 20;
constexpr int kMaxDepth = 64;

// True if `text` is nested deeper than kMaxDepth. Looks only at brackets outside strings, without
// recursion.
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
  if (!json.is_object()) return Wrong(path, "expected a JSON object");
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

absl::Status CheckType(
    const std::string& path, const Json& json, const char* component, const char* expected) {
  const std::string type = StringOf(Member(Member(json, component), "type"));
  if (type == expected) return absl::OkStatus();
  return Wrong(path, absl::StrCat(component, ": type ", type.empty() ? "missing" : Quote(type),
                         ": expected ", expected));
}

absl::Status ReadVocabObject(const std::string& path, const char* what, const Json& vocab,
    std::vector<std::string>* tokens) {
  if (!vocab.is_object())
    return Wrong(path, absl::StrCat(what, ": expected an object of tokens and ids"));
  if (vocab.size() > kMaxTokens)
    return Error(
        Exit::kLimit, absl::StrCat(QuotePath(path), ": more than ", kMaxTokens, " tokens"));
  tokens->assign(vocab.size(), "");
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab.size()) {
      return Wrong(path, absl::StrCat(what, ": id of ", Quote(token), ": expected a number below ",
                             vocab.size(), ", the number of tokens (ids must have no gaps)"));
    }
    std::string& slot = (*tokens)[id.get<uint64_t>()];
    if (!slot.empty())
      return Wrong(
          path, absl::StrCat(what, ": ", Quote(token), " and ", Quote(slot), " have the same id"));
    slot = token;
  }
  return absl::OkStatus();
}

OrderedJson VocabObject(const std::vector<std::string>& tokens) {
  OrderedJson vocab = OrderedJson::object();
  // operator[] would search the object from its start each time.
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (size_t id = 0; id < tokens.size(); ++id)
    entries.emplace_back(tokens[id], static_cast<int64_t>(id));
  return vocab;
}

absl::Status ReadClsAndSep(const std::string& path, const Json& processor, SpecialNames* names) {
  const auto first = [&](const char* key) {
    const Json& pair = Member(processor, key);
    return pair.is_array() && !pair.empty() ? StringOf(pair[0]) : std::string();
  };
  names->cls = first("cls"), names->sep = first("sep");
  if (!names->cls.empty() && !names->sep.empty()) return absl::OkStatus();
  return Wrong(path, "post_processor: expected cls and sep");
}

}  // namespace cloze
