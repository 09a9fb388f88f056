// Added tokens: of tokenizer.json, of tokenizer_config.json and of the other files beside them.
#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

// True if the two tokens can cover the same character of a text.
bool CanOverlap(absl::string_view a, absl::string_view b) {
  if (absl::StrContains(a, b) || absl::StrContains(b, a)) return true;
  for (size_t size = 1; size < std::min(a.size(), b.size()); ++size) {
    if (absl::EndsWith(a, b.substr(0, size)) || absl::EndsWith(b, a.substr(0, size))) return true;
  }
  return false;
}

// True if a text without a normalizer may give other tokens when those of data.normalized are
// looked for after the others.
bool OrderMatters(const TokenizerData& data) {
  constexpr size_t kMaxPairs = 100'000;
  const std::set<int32_t> late(data.normalized.begin(), data.normalized.end());
  std::set<int32_t> all(data.added.begin(), data.added.end());
  all.insert(late.begin(), late.end());
  if (late.size() == all.size()) return false;
  if (late.size() * (all.size() - late.size()) > kMaxPairs) return true;
  for (const int32_t id : late) {
    const std::string& token = data.tokens[id];
    for (const auto* list : {&data.lstrip, &data.rstrip, &data.single_word})
      if (absl::c_linear_search(*list, token)) return true;
    if (absl::ascii_isspace(token.front()) || absl::ascii_isspace(token.back())) return true;
    for (const int32_t other : all)
      if (!late.contains(other) && CanOverlap(token, data.tokens[other])) return true;
  }
  return false;
}

// Adds the flags of the token `id`.
void SetFlags(const AddedToken& token, int32_t id, TokenizerData* data) {
  if (token.special) data->special.push_back(id);
  if (token.normalized) data->normalized.push_back(id);
  if (token.lstrip) data->lstrip.push_back(token.content);
  if (token.rstrip) data->rstrip.push_back(token.content);
  if (token.single_word) data->single_word.push_back(token.content);
}

// Replaces the flags that a tokenizer.json gives a token by those of tokenizer_config.json, which
// transformers prefers, but for `normalized`. False if they differ and the file is kept as it is.
bool ReplaceFlags(const AddedToken& token, int32_t id, TokenizerData* data) {
  bool same = true;
  const auto replace = [&](bool flag, const auto& item, auto* list) {
    if (absl::c_linear_search(*list, item) == flag) return;
    same = false;
    if (flag) list->push_back(item);
    if (!flag) list->erase(std::remove(list->begin(), list->end(), item), list->end());
  };
  replace(token.special, id, &data->special);
  replace(token.lstrip, token.content, &data->lstrip);
  replace(token.rstrip, token.content, &data->rstrip);
  replace(token.single_word, token.content, &data->single_word);
  return same || data->json.empty();
}

// Looks for all added tokens at once if that makes no difference.
void DropNeedlessOrder(TokenizerData* data) {
  const bool normalizes = data->scheme->normalizes_texts() || !data->steps.empty();
  if (!normalizes && !OrderMatters(*data)) data->normalized.clear();
}

using FurtherTokens = std::map<uint64_t, AddedToken>;

// Returns the tokens of tokenizer_config.json or, without it, of added_tokens.json.
absl::StatusOr<FurtherTokens> ReadFurtherTokens(const std::string& folder, const JsonFile* config) {
  FurtherTokens further;
  if (config != nullptr && config->Get("/added_tokens_decoder").is_object()) {
    for (const auto& [id, members] : config->Get("/added_tokens_decoder").items()) {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(id, &number))
        return config->Wrong("added_tokens_decoder: expected ids and objects with content");
      ASSIGN_OR_RETURN(
          further[number], ReadAddedToken(*config, members, "added_tokens_decoder: " + id));
    }
  } else if (const std::string path = JoinPath(folder, "added_tokens.json"); PathExists(path)) {
    ASSIGN_OR_RETURN(const JsonFile list, JsonFile::Read(path));
    for (const auto& [content, id] : list.Get("").items()) {
      if (!id.is_number_unsigned()) return list.Wrong(Quote(content), ": expected an id");
      further[id.get<uint64_t>()] = {.content = content, .normalized = true};
    }
  }
  return further;
}

}  // namespace

absl::StatusOr<AddedToken> ReadAddedToken(
    const JsonFile& file, const Json& json, const std::string& what, bool usually_special) {
  if (!json.is_object()) return file.Wrong(what, ": expected an object with content");
  JsonFields fields(json, absl::StrCat(file.path(), ": ", what));
  fields.AllowOnly(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"});
  const std::string content = fields.String("content");
  const bool special = fields.Bool("special", usually_special);
  AddedToken token = {.content = content,
      .special = special,
      .lstrip = fields.Bool("lstrip", false),
      .rstrip = fields.Bool("rstrip", false),
      .single_word = fields.Bool("single_word", false),
      .normalized = fields.Bool("normalized", !special)};
  if (content.empty()) fields.Fail("content", "expected a token");
  RETURN_IF_ERROR(fields.status());
  return token;
}

absl::Status ReadAddedTokens(const JsonFile& file, TokenizerData* data) {
  const Json& list = file.Get("/added_tokens");
  if (!list.is_null() && !list.is_array()) return file.Wrong("added_tokens: expected a list");
  std::map<uint64_t, AddedToken> added;
  for (const Json& json : list) {
    const Json& id = JsonMember(json, "id");
    if (!id.is_number_unsigned()) return file.Wrong("added_tokens: expected content and id");
    ASSIGN_OR_RETURN(added[id.get<uint64_t>()],
        ReadAddedToken(file, json, absl::StrCat("added_tokens: ", id.get<uint64_t>())));
  }
  for (const auto& [id, token] : added) {
    if (!AddToken(id, token.content, data)) {
      return file.Wrong("added_tokens: ", Quote(token.content), " has id ", id,
          ", which does not fit the vocabulary");
    }
    data->added.push_back(static_cast<int32_t>(id));
    SetFlags(token, static_cast<int32_t>(id), data);
  }
  DropNeedlessOrder(data);
  return absl::OkStatus();
}

absl::Status AddFurtherTokens(const std::string& folder, const JsonFile* config,
    absl::Span<const AddedToken> named, absl::Span<const AddedToken> more, TokenizerData* data) {
  ASSIGN_OR_RETURN(FurtherTokens further, ReadFurtherTokens(folder, config));
  const bool kept = !data->json.empty(), whole = !data->added.empty();  // from a tokenizer.json
  std::set<std::string> known, special;
  for (const int32_t id : data->added) known.insert(data->tokens[id]);
  for (const auto& [field, name] : NameFields(&data->names)) special.insert(*name);
  const auto listed = [&](const std::string& content) {
    return absl::c_any_of(further, [&](const auto& f) { return f.second.content == content; });
  };
  uint64_t next = data->tokens.size();  // id of the next token without one
  if (!further.empty()) next = std::max(next, further.rbegin()->first + 1);
  for (const auto* list : {&named, &more}) {
    for (const AddedToken& token : *list) {
      const auto found = absl::c_find(data->tokens, token.content);
      const bool is_new = found == data->tokens.end();
      if (known.contains(token.content) || listed(token.content)) continue;
      if (list == &more && special.contains(token.content)) continue;
      if (list == &named && is_new) continue;
      further[is_new ? next++ : found - data->tokens.begin()] = token;
    }
  }
  if (listed("<mask>") && !known.contains("<mask>"))
    data->lstrip.erase(
        std::remove(data->lstrip.begin(), data->lstrip.end(), "<mask>"), data->lstrip.end());
  for (const auto& [id, token] : further) {
    const std::string place =
        absl::StrCat(QuotePath(folder), ": added token ", Quote(token.content), ": ");
    if (!AddToken(id, token.content, data))
      return Error(Exit::kData, place, "has id ", id, ", which does not fit the vocabulary");
    if (known.contains(token.content)) {
      const bool flags = config != nullptr && config->Get("/added_tokens_decoder").is_object();
      if (flags && !ReplaceFlags(token, static_cast<int32_t>(id), data))
        return Error(Exit::kData, place, "its flags contradict tokenizer.json");
      continue;
    }
    if (special.contains(token.content)) {
      if (!whole && !kept) SetFlags(token, static_cast<int32_t>(id), data);
      continue;
    }
    if (kept) return Error(Exit::kData, place, "is not in tokenizer.json");
    data->added.push_back(static_cast<int32_t>(id));
    SetFlags(token, static_cast<int32_t>(id), data);
  }
  DropNeedlessOrder(data);
  return absl::OkStatus();
}

}  // namespace cloze
