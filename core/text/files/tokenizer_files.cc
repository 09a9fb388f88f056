// The parts of the files that all kinds of tokenizers share.
#include "core/text/files/tokenizer_files.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/manifest/manifest.h"
#include "core/text/files/formats.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {

absl::StatusOr<JsonFile> JsonFile::Read(const std::string& path) {
  constexpr int64_t kMaxBytes = int64_t{512} << 20;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxBytes));
  return Parse(path, std::move(text));
}

absl::StatusOr<JsonFile> JsonFile::Parse(const std::string& path, std::string text) {
  constexpr int64_t kMaxValues = 5 * kMaxTokens;  // tokens, and two halves for each merge
  JsonFile file(path, std::move(text));
  ASSIGN_OR_RETURN(file.json_, ParseJson(file.text_, path, kMaxValues, &file.vocab_));
  return file;
}

const Json& JsonFile::Get(const std::string& pointer) const {
  const Json* value = &json_;
  std::vector<std::string> names = absl::StrSplit(pointer, '/');
  for (size_t i = 1; i < names.size(); ++i) {
    size_t index;
    const bool item = value->is_array() && absl::SimpleAtoi(names[i], &index);
    value =
        item && index < value->size() ? &(*value)[index] : &JsonMember(*value, names[i].c_str());
  }
  return *value;
}

std::string JsonFile::String(const std::string& pointer) const {
  const Json& value = Get(pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

bool JsonFile::Bool(const std::string& pointer, bool fallback) const {
  const Json& value = Get(pointer);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

JsonFields JsonFile::Fields(const std::string& pointer) const {
  return JsonFields(
      Get(pointer), pointer.empty() ? path_ : absl::StrCat(path_, ": ", pointer.substr(1)));
}

absl::Status JsonFile::AllowOnly(
    const std::string& pointer, absl::Span<const absl::string_view> known) const {
  if (!Get(pointer).is_object()) return Wrong(pointer.substr(1), ": expected an object");
  JsonFields fields = Fields(pointer);
  fields.AllowOnly(known);
  return fields.status();
}

absl::Status JsonFile::CheckType(const std::string& component, const char* expected) const {
  const std::string type = String("/" + component + "/type");
  if (type == expected) return absl::OkStatus();
  return Wrong(
      component, ": type ", type.empty() ? "missing" : Quote(type), ": expected ", expected);
}

absl::Status JsonFile::ReadVocab(
    const std::string& pointer, const char* what, std::vector<std::string>* tokens) const {
  const Json& vocab = Get(pointer);
  if (!vocab.is_object()) return Wrong(what, ": expected an object of tokens and ids");
  const size_t size = vocab_.members.size() + vocab.size();
  if (size > kMaxTokens)
    return Error(Exit::kLimit, QuotePath(path_), ": more than ", kMaxTokens, " tokens");
  tokens->assign(size, "");
  const auto read = [&](const std::string& token, const Json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= size) {
      return Wrong(what, ": id of ", Quote(token), ": expected a number below ", size,
          ", the number of tokens (ids must have no gaps)");
    }
    std::string& slot = (*tokens)[id.get<uint64_t>()];
    if (!slot.empty())
      return Wrong(what, ": ", Quote(token), " and ", Quote(slot), " have the same id");
    slot = token;
    return absl::OkStatus();
  };
  for (const auto& [token, id] : vocab_.members) RETURN_IF_ERROR(read(token, id));
  for (const auto& [token, id] : vocab.items()) RETURN_IF_ERROR(read(token, id));
  return absl::OkStatus();
}

OrderedJson VocabObject(absl::Span<const std::string> tokens) {
  OrderedJson vocab = OrderedJson::object();
  // operator[] would search the object from its start each time.
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (size_t id = 0; id < tokens.size(); ++id)
    entries.emplace_back(tokens[id], static_cast<int64_t>(id));
  return vocab;
}

bool AddToken(uint64_t id, const std::string& token, TokenizerData* data) {
  std::vector<std::string>& tokens = data->tokens;
  if (id == tokens.size()) {
    if (data->model_tokens == 0) data->model_tokens = tokens.size();
    tokens.push_back(token);
  }
  return id < tokens.size() && tokens[id] == token;
}

namespace {

#define CLOZE_FORMAT_ADDRESS(Name) &k##Name##Format,
constexpr const TokenizerFormat* kFormats[] = {CLOZE_SUBWORD_SCHEMES(CLOZE_FORMAT_ADDRESS)};

// Returns the format of the type; null if there is none.
const TokenizerFormat* FindFormat(absl::string_view type) {
  const auto found = absl::c_find_if(
      kFormats, [&](const TokenizerFormat* format) { return type == format->type; });
  return found == std::end(kFormats) ? nullptr : *found;
}

// Checks the members of the file itself, and those of the components that change no ids.
absl::Status CheckMembers(const JsonFile& file) {
  RETURN_IF_ERROR(
      file.AllowOnly("", {"version", "truncation", "padding", "added_tokens", "normalizer",
                             "pre_tokenizer", "post_processor", "decoder", "model"}));
  JsonFields root = file.Fields("");
  root.AllowValues("version", {nullptr, "1.0"});
  RETURN_IF_ERROR(root.status());
  // transformers sets the length and the strategy, which it calls longest_first, for each call.
  if (!file.Get("/truncation").is_null()) {
    RETURN_IF_ERROR(
        file.AllowOnly("/truncation", {"direction", "max_length", "strategy", "stride"}));
    JsonFields truncation = file.Fields("/truncation");
    truncation.AllowValues("direction", {"Right", "Left"});
    truncation.AllowValues("strategy", {"LongestFirst", "OnlyFirst", "OnlySecond"});
    RETURN_IF_ERROR(truncation.status());
  }
  if (file.Get("/padding").is_null()) return absl::OkStatus();
  return file.AllowOnly("/padding",
      {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
}

// Keeps the file, which says more than the writer of the kind could, and what determines its ids.
void KeepFile(const JsonFile& file, TokenizerData* data) {
  data->json = file.text();
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "added_tokens"})
    absl::StrAppend(&data->rules, file.Get(absl::StrCat("/", part)).dump(), "\n");
}

}  // namespace

const TokenizerFormat& FormatOf(const TokenizerData& data) {
  return *FindFormat(data.scheme->type());
}

absl::StatusOr<TokenizerData> ReadTokenizerJson(const JsonFile& file) {
  if (!file.Get("/<s>").is_null() || !file.Get("/[CLS]").is_null())
    return file.Wrong("a vocabulary without a tokenizer: expected tokenizer.json or its folder");
  std::string type = file.String("/model/type");
  if (type.empty()) type = file.Get("/model/merges").is_null() ? "WordPiece" : "BPE";
  const TokenizerFormat* format = FindFormat(type);
  if (format == nullptr) {
    const std::string types = absl::StrJoin(kFormats, ", ",
        [](std::string* out, const TokenizerFormat* known) { *out += known->type; });
    return file.Wrong("model: type ", Quote(type), ": expected one of ", types);
  }
  TokenizerData data;
  data.truncates_left = file.String("/truncation/direction") == "Left";
  RETURN_IF_ERROR(CheckMembers(file));
  RETURN_IF_ERROR(format->read(file, &data));
  RETURN_IF_ERROR(ReadAddedTokens(file, &data));
  RETURN_IF_ERROR(ReadPostProcessor(file, &data));
  const SpecialNames& names = data.names;
  const bool reproduced = format->can_write != nullptr && data.steps.empty() &&
                          format->can_write(data) &&
                          data.templates == data.scheme->UsualTemplates(names.cls, names.sep);
  if (!reproduced) KeepFile(file, &data);
  return data;
}

namespace {

// Reads the vocabulary files of the first kind of which `folder` has one.
absl::Status ReadVocabFiles(
    const std::string& folder, bool lowercase, TokenizerData* data, TokenOrigin* origin) {
  for (const TokenizerFormat* format : kFormats) {
    std::vector<std::string> paths;
    for (const VocabFile& file : format->vocab_files) paths.push_back(JoinPath(folder, file.name));
    if (std::none_of(paths.begin(), paths.end(), PathExists)) continue;
    for (const std::string& path : paths) {
      if (!PathExists(path)) return Error(Exit::kNoInput, QuotePath(path), ": missing");
    }
    *origin = {paths[0], paths.size() == 1, paths.back()};
    return format->read_vocab(paths, lowercase, data);
  }
  return Error(Exit::kNoInput, QuotePath(folder),
      ": no tokenizer: expected tokenizer.json, vocab.txt or vocab.json with merges.txt");
}

OrderedJson AddedTokensJson(const Tokenizer& tokenizer) {
  const TokenizerData& data = tokenizer.data();
  std::set<int32_t> ids(data.added.begin(), data.added.end());
  for (const int32_t id : tokenizer.special().All()) {
    if (id >= 0) ids.insert(id);
  }
  OrderedJson added = OrderedJson::array();
  for (const int32_t id : ids) {
    const std::string& token = tokenizer.token(id);
    added.push_back({{"id", id}, {"content", token},
        {"single_word", absl::c_linear_search(data.single_word, token)},
        {"lstrip", absl::c_linear_search(data.lstrip, token)},
        {"rstrip", absl::c_linear_search(data.rstrip, token)},
        {"normalized", absl::c_linear_search(data.normalized, id)},
        {"special", tokenizer.is_special(id)}});
  }
  return added;
}

// tokenizer_config.json for a tokenizer.json that transformers must not rebuild by itself.
OrderedJson PlainConfig(const TokenizerData& data, int64_t max_length) {
  OrderedJson inputs = OrderedJson::array({"input_ids", "attention_mask"});
  const bool types =
      absl::c_any_of(data.templates.pair, [](const TemplateItem& item) { return item.type > 0; });
  if (types) inputs.insert(inputs.begin() + 1, "token_type_ids");
  OrderedJson config = {{"backend", "tokenizers"}, {"model_input_names", std::move(inputs)},
      {"model_max_length", max_length}, {"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (FormatOf(data).has_text_ends && !data.names.cls.empty() && !data.names.sep.empty())
    config["bos_token"] = data.names.cls, config["eos_token"] = data.names.sep;
  return config;
}

}  // namespace

std::vector<const char*> OtherVocabFiles(const Tokenizer& tokenizer) {
  std::vector<const char*> names = {"added_tokens.json"};
  for (const TokenizerFormat* format : kFormats) {
    if (format == &FormatOf(tokenizer.data())) continue;
    for (const VocabFile& file : format->vocab_files) names.push_back(file.name);
  }
  return names;
}

absl::Status CheckVocab(const std::string& folder, const Tokenizer& tokenizer, int64_t vocab) {
  if (tokenizer.vocab_size() <= vocab) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(folder), ": the tokenizer has ", tokenizer.vocab_size(),
      " tokens: expected at most ", vocab, ", as the model");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path, bool lowercase) {
  TokenizerData data;
  if (!PathExists(path)) return NoSuchModel(path);
  const bool folder = IsDirectory(path);
  if (folder) RETURN_IF_ERROR(CheckFolder(path));
  TokenOrigin origin{folder ? JoinPath(path, "tokenizer.json") : path};
  const bool from_json = folder ? PathExists(origin.file) : absl::EndsWith(path, ".json");
  if (from_json) {
    ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Read(origin.file));
    ASSIGN_OR_RETURN(data, ReadTokenizerJson(file));
    const auto check = FormatOf(data).check_folder;
    if (folder && check != nullptr) RETURN_IF_ERROR(check(path, data));
  } else if (folder) {
    RETURN_IF_ERROR(ReadVocabFiles(path, lowercase, &data, &origin));
  } else {
    origin.lines = true;
    RETURN_IF_ERROR(kWordPieceFormat.read_vocab({path}, lowercase, &data));
  }
  if (folder) RETURN_IF_ERROR(ReadBeside(path, from_json, &data));
  return Tokenizer::Create(std::move(data), origin);
}

absl::Status SaveTokenizer(
    const Tokenizer& tokenizer, const std::string& directory, int64_t max_length) {
  const TokenizerData& data = tokenizer.data();
  const auto write = [&](const char* name, const std::string& content) {
    return WriteFileAtomically(JoinPath(directory, name), content);
  };
  const TokenizerFormat& format = FormatOf(data);
  OrderedJson names = OrderedJson::object(), config = PlainConfig(data, max_length);
  // Readers prefer tokenizer.json. An interrupted save may leave the old tokenizer_config.json or
  // merges.txt beside it.
  if (!data.json.empty()) {
    RETURN_IF_ERROR(write("tokenizer.json", data.json));
  } else {
    OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
        {"added_tokens", AddedTokensJson(tokenizer)}};
    format.write(tokenizer, &json);
    RETURN_IF_ERROR(write("tokenizer.json", ToJsonText(json)));
    for (const VocabFile& file : format.vocab_files)
      RETURN_IF_ERROR(write(file.name, file.content(data)));
    config = format.config(data, max_length);
  }
  // tokenizer_config.json decides if the kept tokenizer.json says "Left".
  if (data.truncates_left || absl::StrContains(data.json, "\"Left\""))
    config["truncation_side"] = data.truncates_left ? "left" : "right";
  SpecialNames special = data.names;
  for (const auto& [field, name] : NameFields(&special)) {
    if (!name->empty()) names[field] = config[field] = *name;
  }
  RETURN_IF_ERROR(write("special_tokens_map.json", ToJsonText(names)));
  return write("tokenizer_config.json", ToJsonText(config));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFirstTokenizer(
    absl::Span<const std::string> folders, bool lowercase, int64_t vocab) {
  absl::Status missing;
  for (const std::string& folder : folders) {
    auto tokenizer = LoadTokenizer(folder, lowercase);
    if (tokenizer.ok()) RETURN_IF_ERROR(CheckVocab(folder, **tokenizer, vocab));
    if (ExitOf(tokenizer.status()) != Exit::kNoInput) return tokenizer;
    missing = tokenizer.status();
  }
  return missing;
}

absl::Status CopyTokenizer(absl::Span<const std::string> folders, const std::string& directory,
    int64_t vocab, int64_t max_length) {
  const auto tokenizer = LoadFirstTokenizer(folders, true, vocab);
  if (ExitOf(tokenizer.status()) == Exit::kNoInput) return absl::OkStatus();
  RETURN_IF_ERROR(tokenizer.status());
  return SaveTokenizer(**tokenizer, directory, max_length);
}

}  // namespace cloze
