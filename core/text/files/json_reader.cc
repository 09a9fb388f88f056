#include "core/text/files/json_reader.h"

#include "core/base/file.h"

namespace cloze {
namespace {

constexpr int64_t kMaxJsonBytes = int64_t{512} << 20;
constexpr int64_t kMaxValues = 5 * kMaxTokens;  // tokens, and two halves for each merge

}  // namespace

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return Error(Exit::kData, QuotePath(path), ": ", what);
}

absl::StatusOr<Json> ReadJsonObject(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxJsonBytes));
  return ParseJson(text, path, kMaxValues);
}

std::string StringOf(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}
bool BoolOf(const Json& value, bool otherwise) {
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

absl::Status CheckType(
    const std::string& path, const Json& json, const char* component, const char* expected) {
  const std::string type = StringOf(JsonMember(JsonMember(json, component), "type"));
  if (type == expected) return absl::OkStatus();
  return Wrong(path, absl::StrCat(component, ": type ", type.empty() ? "missing" : Quote(type),
                         ": expected ", expected));
}

absl::Status ReadVocabObject(const std::string& path, const char* what, const Json& vocab,
    std::vector<std::string>* tokens) {
  if (!vocab.is_object())
    return Wrong(path, absl::StrCat(what, ": expected an object of tokens and ids"));
  if (vocab.size() > kMaxTokens)
    return Error(Exit::kLimit, QuotePath(path), ": more than ", kMaxTokens, " tokens");
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
    const Json& pair = JsonMember(processor, key);
    return pair.is_array() && !pair.empty() ? StringOf(pair[0]) : std::string();
  };
  names->cls = first("cls"), names->sep = first("sep");
  if (!names->cls.empty() && !names->sep.empty()) return absl::OkStatus();
  return Wrong(path, "post_processor: expected cls and sep");
}

}  // namespace cloze
