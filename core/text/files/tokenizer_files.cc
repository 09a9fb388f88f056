// The parts of the files that all kinds of tokenizers share.
#include "core/text/files/tokenizer_files.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

constexpr const TokenizerFormat* kFormats[] = {&kBertFormat, &kRobertaFormat};

const TokenizerFormat& FormatOf(SubwordKind kind) {
  return kind == kBertFormat.kind ? kBertFormat : kRobertaFormat;
}

absl::Status ReadAddedTokens(const std::string& path, const Json& json, TokenizerData* data) {
  std::map<uint64_t, std::string> added;
  for (const Json& token : JsonMember(json, "added_tokens")) {
    const std::string content = StringOf(JsonMember(token, "content"));
    const Json& id = JsonMember(token, "id");
    if (content.empty() || !id.is_number_unsigned())
      return Wrong(path, "added_tokens: expected content and id");
    // Without a normaliser, `normalized` makes no difference.
    const bool normalized =
        !JsonMember(json, "normalizer").is_null() && BoolOf(JsonMember(token, "normalized"), false);
    if (normalized || BoolOf(JsonMember(token, "single_word"), false)) {
      return Wrong(path, absl::StrCat("added_tokens: ", Quote(content), ": ",
                             normalized ? "normalized" : "single_word", " is not supported"));
    }
    added[id.get<uint64_t>()] = content;
    if (BoolOf(JsonMember(token, "lstrip"), false)) data->lstrip.push_back(content);
    if (BoolOf(JsonMember(token, "rstrip"), false)) data->rstrip.push_back(content);
  }
  for (const auto& [id, content] : added) {
    if (id == data->tokens.size()) data->tokens.push_back(content);
    if (id >= data->tokens.size() || data->tokens[id] != content) {
      return Wrong(path, absl::StrCat("added_tokens: ", Quote(content), " has id ", id,
                             ", which does not fit the vocabulary"));
    }
    data->added.push_back(static_cast<int32_t>(id));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizerData> ReadTokenizerJson(const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  if (json.contains("<s>") || json.contains("[CLS]"))
    return Wrong(path, "a vocabulary without a tokenizer: expected tokenizer.json or its folder");
  const Json& model = JsonMember(json, "model");
  std::string type = StringOf(JsonMember(model, "type"));
  if (type.empty()) type = JsonMember(model, "merges").is_null() ? "WordPiece" : "BPE";
  for (const TokenizerFormat* format : kFormats) {
    if (type != format->model) continue;
    TokenizerData data;
    data.kind = format->kind;
    RETURN_IF_ERROR(format->read(path, json, &data));
    RETURN_IF_ERROR(ReadAddedTokens(path, json, &data));
    return data;
  }
  return Wrong(path, absl::StrCat("model: type ", Quote(type), ": expected WordPiece or BPE"));
}

// The fields of tokenizer_config.json and special_tokens_map.json that name special tokens.
std::vector<std::pair<const char*, std::string*>> NameFields(SpecialNames* names) {
  return {{"cls_token", &names->cls}, {"mask_token", &names->mask}, {"pad_token", &names->pad},
      {"sep_token", &names->sep}, {"unk_token", &names->unk}};
}

// Fills the names that `data` does not have yet and, with `normalizer`, the normaliser's options.
absl::Status ReadTokenizerConfig(const std::string& path, bool normalizer, TokenizerData* data) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  if (normalizer) {
    NormalizerOptions& options = data->options;
    options.lowercase = BoolOf(JsonMember(json, "do_lower_case"), options.lowercase);
    options.strip_accents = BoolOf(JsonMember(json, "strip_accents"), options.lowercase);
    options.chinese_chars = BoolOf(JsonMember(json, "tokenize_chinese_chars"), true);
  }
  for (const auto& [field, name] : NameFields(&data->names)) {
    const Json& token = JsonMember(json, field);  // a string, or an object with "content"
    if (name->empty()) *name = StringOf(token.is_object() ? JsonMember(token, "content") : token);
  }
  return absl::OkStatus();
}

// Reads the vocabulary files of the first kind of which `folder` has one.
absl::Status ReadVocabFiles(const std::string& folder, TokenizerData* data, TokenOrigin* origin) {
  for (const TokenizerFormat* format : kFormats) {
    std::vector<std::string> paths;
    for (const VocabFile& file : format->vocab_files) paths.push_back(JoinPath(folder, file.name));
    if (std::none_of(paths.begin(), paths.end(), PathExists)) continue;
    for (const std::string& path : paths) {
      if (!PathExists(path)) return Error(Exit::kNoInput, QuotePath(path), ": missing");
    }
    data->kind = format->kind;
    *origin = {paths[0], format->token_per_line, paths.back()};
    return format->read_vocab(paths, data);
  }
  return Error(Exit::kNoInput, QuotePath(folder),
      ": no tokenizer: expected tokenizer.json, vocab.txt or vocab.json with merges.txt");
}

OrderedJson AddedTokensJson(const Tokenizer& tokenizer) {
  const TokenizerData& data = tokenizer.data();
  std::vector<int32_t> ids = data.added;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const auto is_in = [](const std::vector<std::string>& list, const std::string& token) {
    return std::find(list.begin(), list.end(), token) != list.end();
  };
  OrderedJson added = OrderedJson::array();
  for (const int32_t id : ids) {
    const std::string& token = tokenizer.token(id);
    added.push_back({{"id", id}, {"content", token}, {"single_word", false},
        {"lstrip", is_in(data.lstrip, token)}, {"rstrip", is_in(data.rstrip, token)},
        {"normalized", false}, {"special", tokenizer.is_special(id)}});
  }
  return added;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path, bool lowercase) {
  TokenizerData data;
  data.options.lowercase = data.options.strip_accents = lowercase;
  const bool folder = IsDirectory(path);
  TokenOrigin origin{folder ? JoinPath(path, "tokenizer.json") : path};
  const bool from_json = folder ? PathExists(origin.file) : absl::EndsWith(path, ".json");
  if (from_json) {
    ASSIGN_OR_RETURN(data, ReadTokenizerJson(origin.file));
    const auto check = FormatOf(data.kind).check_folder;
    if (folder && check != nullptr) RETURN_IF_ERROR(check(path, data));
  } else if (folder) {
    RETURN_IF_ERROR(ReadVocabFiles(path, &data, &origin));
  } else {
    origin.lines = true;
    RETURN_IF_ERROR(kBertFormat.read_vocab({path}, &data));
  }
  if (const std::string config = JoinPath(path, "tokenizer_config.json");
      folder && PathExists(config))
    RETURN_IF_ERROR(ReadTokenizerConfig(config, !from_json, &data));
  return Tokenizer::Create(std::move(data), origin);
}

absl::Status SaveTokenizer(
    const Tokenizer& tokenizer, const std::string& directory, int64_t max_length) {
  const TokenizerData& data = tokenizer.data();
  const auto write = [&](const char* name, const std::string& content) {
    return WriteFileAtomically(JoinPath(directory, name), content);
  };
  const TokenizerFormat& format = FormatOf(data.kind);
  OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", AddedTokensJson(tokenizer)}};
  format.write(tokenizer, &json);
  // LoadTokenizer prefers tokenizer.json, so an interrupted save is never a mixture.
  RETURN_IF_ERROR(write("tokenizer.json", ToJsonText(json)));
  for (const VocabFile& file : format.vocab_files)
    RETURN_IF_ERROR(write(file.name, file.content(data)));
  OrderedJson names = OrderedJson::object(), config = format.config(data, max_length);
  SpecialNames special = data.names;
  for (const auto& [field, name] : NameFields(&special)) {
    if (!name->empty()) names[field] = config[field] = *name;
  }
  RETURN_IF_ERROR(write("special_tokens_map.json", ToJsonText(names)));
  return write("tokenizer_config.json", ToJsonText(config));
}

}  // namespace cloze
