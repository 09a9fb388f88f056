// tokenizer_config.json and special_tokens_map.json, which stand beside a vocabulary or
// tokenizer.json.
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {

std::vector<std::pair<const char*, std::string*>> NameFields(SpecialNames* names) {
  return {{"cls_token", &names->cls}, {"mask_token", &names->mask}, {"pad_token", &names->pad},
      {"sep_token", &names->sep}, {"unk_token", &names->unk}};
}

namespace {

// The members of tokenizer_config.json that this file reads, then those that change no result of
// ours: of other programs and tasks, of padding and decoding, and of classes whose tokenizer.json
// has them as components.
constexpr absl::string_view kConfigMembers[] = {"add_bos_token", "add_eos_token",
    "add_prefix_space", "added_tokens_decoder", "additional_special_tokens", "bos_token",
    "clean_text", "cls_token", "do_lower_case", "eos_token", "extra_special_tokens", "mask_token",
    "model_input_names", "pad_token", "sep_token", "strip_accents", "tokenize_chinese_chars",
    "tokenizer_class", "trim_offsets", "truncation_side", "unk_token", "wordpieces_prefix",
    // of no effect
    "auto_map", "backend", "chat_template", "clean_up_tokenization_spaces", "device",
    "do_basic_tokenize", "errors", "extra_ids", "fix_mistral_regex", "from_slow",
    "full_tokenizer_file", "init_inputs", "is_local", "keep_accents", "lang", "legacy",
    "legacy_behaviour", "local_files_only", "max_len", "max_length", "max_seq_length",
    "merges_file", "model_max_length", "model_type", "name_or_path", "pad_to_multiple_of",
    "pad_token_type_id", "padding", "padding_side", "processor_class", "remove_space",
    "return_token_type_ids", "separate_vocabs", "source_lang", "source_spm", "sp_model_file",
    "special_tokens_map_file", "spm_file", "src_lang", "stride", "target_lang", "target_spm",
    "tgt_lang", "tokenizer_file", "tokenizer_type", "transformers_version", "truncation_strategy",
    "trust_remote_code", "use_default_system_prompt", "use_fast", "verbose", "vocab_file",
    "vocab_size", "vocab_type"};

// Classes of BERT's vocabularies whose second text has the type of the first.
constexpr absl::string_view kClassesWithoutTypes[] = {"DistilBertTokenizer", "MPNetTokenizer"};

// Special tokens of two files, with their flags.
struct NamedTokens {
  std::vector<AddedToken> named, more;
  std::string bos = kEndOfText, eos = kEndOfText;
};

// Applies the settings of the scheme in tokenizer_config.json. transformers prefers them to
// tokenizer.json, unless the class is its generic one.
absl::Status ReadSchemeConfig(const JsonFile& file, bool from_json, TokenizerData* data) {
  const std::string type = file.String("/tokenizer_class");
  if (from_json && (type == "PreTrainedTokenizerFast" || type == "TokenizersBackend"))
    return absl::OkStatus();
  const auto read = FormatOf(*data).read_config;
  if (read == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool changed, read(file, from_json, data));
  if (!changed || data->json.empty()) return absl::OkStatus();
  return file.Wrong("contradicts the tokenizer.json beside it: expected the same do_lower_case, ",
      "strip_accents, tokenize_chinese_chars and add_prefix_space (those that are not given have ",
      "the defaults of tokenizer_class)");
}

// Reads a special token: a string, or an object with its flags, which goes to *list unless that has
// the token. Returns "" if the member is missing or null.
absl::StatusOr<std::string> ReadNamed(
    const JsonFile& file, const std::string& what, std::vector<AddedToken>* list) {
  const Json& json = file.Get("/" + what);
  if (json.is_null() || json.is_string()) return file.String("/" + what);
  ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(file, json, what, true));
  token.special = true;
  const std::string content = token.content;
  if (absl::c_none_of(*list, [&](const AddedToken& t) { return t.content == content; }))
    list->push_back(std::move(token));
  return content;
}

// Fills the names that are still empty, and *tokens.
absl::Status FillNames(const JsonFile& file, SpecialNames* names, NamedTokens* tokens) {
  for (const auto& [field, name] : NameFields(names)) {
    ASSIGN_OR_RETURN(const std::string found, ReadNamed(file, field, &tokens->named));
    if (name->empty()) *name = found;
  }
  for (const auto& [field, name] :
      {std::pair("bos_token", &tokens->bos), std::pair("eos_token", &tokens->eos)}) {
    ASSIGN_OR_RETURN(const std::string found, ReadNamed(file, field, &tokens->named));
    if (!file.Get(absl::StrCat("/", field)).is_null() || file.Fields("").IsNull(field))
      *name = found;
  }
  for (const std::string list : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json& members = file.Get("/" + list);
    if (!members.is_null() && !members.is_structured())
      return file.Wrong(list, ": expected a list of tokens");
    for (const auto& [key, json] : members.items()) {
      AddedToken token;
      if (json.is_string()) {
        token.content = json.get<std::string>();
      } else {
        ASSIGN_OR_RETURN(
            token, ReadAddedToken(file, json, absl::StrCat(list, ": ", Quote(key)), true));
      }
      token.special = true;
      tokens->more.push_back(std::move(token));
    }
  }
  return absl::OkStatus();
}

// Fills the names that `data` does not have yet, and sets what tokenizer_config.json says of texts.
absl::Status ReadTokenizerConfig(
    const JsonFile& file, bool from_json, TokenizerData* data, NamedTokens* tokens) {
  JsonFields fields = file.Fields("");
  fields.AllowOnlyUnset(kConfigMembers);
  fields.AllowValues("truncation_side", {nullptr, "right", "left"});
  fields.AllowValues("clean_text", {nullptr, true});
  fields.AllowValues("wordpieces_prefix", {nullptr, "##"});
  if (const std::string side = fields.String("truncation_side"); !side.empty())
    data->truncates_left = side == "left";
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(ReadSchemeConfig(file, from_json, data));
  const Json& inputs = file.Get("/model_input_names");
  const std::string type = file.String("/tokenizer_class");
  data->one_type = inputs.is_array() ? !absl::c_linear_search(inputs, "token_type_ids")
                                     : absl::c_linear_search(
                                           kClassesWithoutTypes, absl::StripSuffix(type, "Fast"));
  return FillNames(file, &data->names, tokens);
}

// Returns GPT-2's templates, in which bos and eos stand around each text if they are not empty.
Templates AroundTemplates(const std::string& bos, const std::string& eos) {
  Templates templates;
  for (const int text : {0, 1}) {
    if (!bos.empty()) templates.pair.push_back({.token = bos});
    templates.pair.push_back({.text = text});
    if (!eos.empty()) templates.pair.push_back({.token = eos});
    if (text == 0) templates.single = templates.pair;
  }
  return templates;
}

// Classes whose files have the names of BERT's or GPT-2's, but are read in other ways.
constexpr absl::string_view kForeignClasses[] = {"BertJapaneseTokenizer", "BertweetTokenizer",
    "BioGptTokenizer", "BlenderbotSmallTokenizer", "CLIPTokenizer", "CTRLTokenizer",
    "FlaubertTokenizer", "FSMTTokenizer", "HerbertTokenizer", "OpenAIGPTTokenizer",
    "PhobertTokenizer", "RoFormerTokenizer", "XLMTokenizer"};

// Sets the special tokens that are added to texts, of a vocabulary without a tokenizer.json, from
// the class of tokenizer_config.json or the family of config.json. kData for foreign classes.
absl::Status SetTemplates(const std::string& folder, const JsonFile* config,
    const NamedTokens& tokens, TokenizerData* data) {
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
  if (absl::StartsWith(name, "GPT2Tokenizer") || name == "gpt2") {
    const auto added = [&](const char* flag, const std::string& token) {
      return config != nullptr && config->Bool(flag, false) ? token : "";
    };
    data->templates =
        AroundTemplates(added("/add_bos_token", tokens.bos), added("/add_eos_token", tokens.eos));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBeside(const std::string& folder, bool from_json, TokenizerData* data) {
  std::optional<JsonFile> config;
  NamedTokens tokens;
  if (const std::string path = JoinPath(folder, "tokenizer_config.json"); PathExists(path)) {
    ASSIGN_OR_RETURN(config, JsonFile::Read(path));
    RETURN_IF_ERROR(ReadTokenizerConfig(*config, from_json, data, &tokens));
  }
  const JsonFile* const beside = config ? &*config : nullptr;
  if (const std::string path = JoinPath(folder, "special_tokens_map.json"); PathExists(path)) {
    ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Read(path));
    JsonFields fields = file.Fields("");
    fields.AllowOnlyUnset({"additional_special_tokens", "bos_token", "cls_token", "eos_token",
        "extra_special_tokens", "mask_token", "pad_token", "sep_token", "unk_token"});
    RETURN_IF_ERROR(fields.status());
    NamedTokens others;  // a tokenizer.json has its own named tokens
    RETURN_IF_ERROR(FillNames(file, &data->names, from_json ? &others : &tokens));
    if (from_json && (beside == nullptr || !beside->Get("/added_tokens_decoder").is_object()))
      absl::c_move(others.more, std::back_inserter(tokens.more));
  }
  if (!from_json) RETURN_IF_ERROR(SetTemplates(folder, beside, tokens, data));
  return AddFurtherTokens(folder, beside, tokens.named, tokens.more, data);
}

}  // namespace cloze
