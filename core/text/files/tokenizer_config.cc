// tokenizer_config.json and added_tokens.json, which stand beside a vocabulary or tokenizer.json.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {

std::vector<std::pair<const char*, std::string*>> NameFields(SpecialNames* names) {
  return {{"cls_token", &names->cls}, {"mask_token", &names->mask}, {"pad_token", &names->pad},
      {"sep_token", &names->sep}, {"unk_token", &names->unk}};
}

namespace {

// Applies the normalizer settings of tokenizer_config.json. transformers prefers them to
// tokenizer.json, unless the class is its generic one.
absl::Status ReadNormalizer(const JsonFile& file, bool from_json, TokenizerData* data) {
  const std::string type = file.String("/tokenizer_class");
  if (from_json && (type == "PreTrainedTokenizerFast" || type == "TokenizersBackend"))
    return absl::OkStatus();
  NormalizerOptions& options = data->options;
  const NormalizerOptions before = options;
  // For other kinds the options only enter the key of the token cache, which must not change.
  if (!from_json || data->kind == SubwordKind::kWordPiece) {
    options.lowercase = file.Bool("/do_lower_case", options.lowercase);
    // Unless it is given, strip_accents follows do_lower_case.
    options.strip_accents = file.Bool("/strip_accents",
        before.strip_accents == before.lowercase ? options.lowercase : before.strip_accents);
    options.chinese_chars = file.Bool("/tokenize_chinese_chars", options.chinese_chars);
  }
  const bool prefixed = data->add_prefix_space;
  if (data->kind == SubwordKind::kByteBpe)
    data->add_prefix_space = file.Bool("/add_prefix_space", prefixed);
  if (data->add_prefix_space != prefixed) data->trim_keeps_first = data->add_prefix_space;
  const bool same = options == before && data->add_prefix_space == prefixed;
  if (same || data->json.empty()) return absl::OkStatus();
  return file.Wrong("contradicts the tokenizer.json beside it: expected the same do_lower_case, ",
      "strip_accents, tokenize_chinese_chars and add_prefix_space");
}

// Fills the names that are still empty.
void FillNames(const JsonFile& file, SpecialNames* names) {
  for (const auto& [field, name] : NameFields(names)) {
    const std::string pointer = absl::StrCat("/", field);  // a string, or an object with "content"
    if (name->empty()) *name = file.String(pointer);
    if (name->empty()) *name = file.String(pointer + "/content");
  }
}

// Fills the names that `data` does not have yet, and sets what tokenizer_config.json says of texts.
absl::Status ReadTokenizerConfig(const JsonFile& file, bool from_json, TokenizerData* data) {
  RETURN_IF_ERROR(ReadNormalizer(file, from_json, data));
  const Json& inputs = file.Get("/model_input_names");
  data->one_type = inputs.is_array() && !absl::c_linear_search(inputs, "token_type_ids");
  FillNames(file, &data->names);
  return absl::OkStatus();
}

// Classes whose files have the names of BERT's or GPT-2's, but are read in other ways.
constexpr absl::string_view kForeignClasses[] = {"BertJapaneseTokenizer", "BertweetTokenizer",
    "BioGptTokenizer", "BlenderbotSmallTokenizer", "CLIPTokenizer", "CTRLTokenizer",
    "FlaubertTokenizer", "FSMTTokenizer", "HerbertTokenizer", "OpenAIGPTTokenizer",
    "PhobertTokenizer", "RoFormerTokenizer", "XLMTokenizer"};

// Sets the special tokens that are added to texts, of a vocabulary without a tokenizer.json, from
// the class of tokenizer_config.json or the family of config.json. kData for foreign classes.
absl::Status SetTemplates(const std::string& folder, const JsonFile* config, TokenizerData* data) {
  std::string name = config == nullptr ? "" : config->String("/tokenizer_class");
  if (const std::string path = JoinPath(folder, "config.json"); name.empty() && PathExists(path)) {
    ASSIGN_OR_RETURN(const JsonFile model, JsonFile::Read(path));
    name = model.String("/tokenizer_class");
    if (name.empty()) name = model.String("/model_type");
  }
  if (absl::c_linear_search(kForeignClasses, absl::StripSuffix(name, "Fast")))
    return Error(Exit::kData, QuotePath(folder), ": tokenizer_class ", Quote(name),
        " is not supported without a tokenizer.json");
  if (!data->templates.single.empty()) return absl::OkStatus();
  if (absl::StartsWith(name, "MPNetTokenizer") || name == "mpnet")
    data->make_templates = RobertaTemplates;
  if (absl::StartsWith(name, "GPT2Tokenizer") || name == "gpt2")
    data->make_templates = [](const std::string&, const std::string&) { return BareTemplates(); };
  return absl::OkStatus();
}

// Fills the names that `data` does not have yet from special_tokens_map.json.
absl::Status ReadSpecialTokensMap(const std::string& folder, TokenizerData* data) {
  const std::string path = JoinPath(folder, "special_tokens_map.json");
  if (!PathExists(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Read(path));
  FillNames(file, &data->names);
  return absl::OkStatus();
}

struct FurtherToken {
  std::string content;
  bool special = false, lstrip = false, rstrip = false, normalized = false;
};
using FurtherTokens = std::map<uint64_t, FurtherToken>;

// Returns the tokens of tokenizer_config.json or, without it, of added_tokens.json.
absl::StatusOr<FurtherTokens> ReadFurtherTokens(const std::string& folder, const JsonFile* config) {
  FurtherTokens further;
  if (config != nullptr && config->Get("/added_tokens_decoder").is_object()) {
    for (const auto& [id, token] : config->Get("/added_tokens_decoder").items()) {
      const Json& members = token;  // clang 14 does not capture structured bindings
      const auto flag = [&](const char* name) { return JsonMember(members, name) == true; };
      const Json& content = JsonMember(members, "content");
      uint64_t number = 0;
      if (!absl::SimpleAtoi(id, &number) || !content.is_string())
        return config->Wrong("added_tokens_decoder: expected ids and objects with content");
      further[number] = {content.get<std::string>(), flag("special"), flag("lstrip"),
          flag("rstrip"), flag("normalized")};
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

// Adds the further tokens that are neither added nor special tokens yet.
absl::Status AddFurtherTokens(
    const std::string& folder, FurtherTokens further, const JsonFile* config, TokenizerData* data) {
  std::set<std::string> known;
  for (const int32_t id : data->added) known.insert(data->tokens[id]);
  for (const auto& [field, name] : NameFields(&data->names)) known.insert(*name);
  uint64_t next = data->tokens.size();  // id of the next token without one
  if (!further.empty()) next = std::max(next, further.rbegin()->first + 1);
  for (const char* field : {"/additional_special_tokens", "/extra_special_tokens"}) {
    for (const Json& token : config == nullptr ? Json() : config->Get(field)) {
      const Json& content = token.is_string() ? token : JsonMember(token, "content");
      if (!content.is_string() || known.contains(content.get<std::string>())) continue;
      const auto text = content.get<std::string>();
      const bool listed =
          absl::c_any_of(further, [&](const auto& f) { return f.second.content == text; });
      if (listed) continue;
      const auto found = absl::c_find(data->tokens, text);
      further[found == data->tokens.end() ? next++ : found - data->tokens.begin()] = {
          .content = text, .special = true};
    }
  }
  for (const auto& [id, added] : further) {
    const FurtherToken& token = added;
    const auto wrong = [&](const auto&... what) {
      return Error(
          Exit::kData, QuotePath(folder), ": added token ", Quote(token.content), ": ", what...);
    };
    if (!PlaceToken(id, token.content, data))
      return wrong("has id ", id, ", which does not fit the vocabulary");
    if (known.contains(token.content)) continue;
    if (!data->json.empty()) return wrong("is not in tokenizer.json");
    data->added.push_back(static_cast<int32_t>(id));
    // The other kinds normalize no text when they are read without a tokenizer.json.
    if (token.normalized && data->kind == SubwordKind::kWordPiece)
      data->normalized.push_back(static_cast<int32_t>(id));
    if (token.special) data->special.push_back(static_cast<int32_t>(id));
    if (token.lstrip) data->lstrip.push_back(token.content);
    if (token.rstrip) data->rstrip.push_back(token.content);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBeside(const std::string& folder, bool from_json, TokenizerData* data) {
  std::optional<JsonFile> config;
  if (const std::string path = JoinPath(folder, "tokenizer_config.json"); PathExists(path)) {
    ASSIGN_OR_RETURN(config, JsonFile::Read(path));
    RETURN_IF_ERROR(ReadTokenizerConfig(*config, from_json, data));
  }
  const JsonFile* const beside = config ? &*config : nullptr;
  if (!from_json) {
    RETURN_IF_ERROR(ReadSpecialTokensMap(folder, data));
    RETURN_IF_ERROR(SetTemplates(folder, beside, data));
  }
  ASSIGN_OR_RETURN(FurtherTokens further, ReadFurtherTokens(folder, beside));
  return AddFurtherTokens(folder, std::move(further), beside, data);
}

}  // namespace cloze
