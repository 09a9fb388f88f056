// Reads and writes Hugging Face's tokenizer.json, tokenizer_config.json and
// special_tokens_map.json.
#include <algorithm>
#include <map>

#include "core/text/files/byte_level_json.h"
#include "core/text/files/json_reader.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {
namespace {

using OrderedJson = nlohmann::ordered_json;

absl::Status ReadNormalizer(const std::string& path, const Json& json, NormalizerOptions* options) {
  RETURN_IF_ERROR(CheckType(path, json, "normalizer", "BertNormalizer"));
  const Json& normalizer = Member(json, "normalizer");
  options->clean_text = BoolOf(Member(normalizer, "clean_text"), true);
  options->chinese_chars = BoolOf(Member(normalizer, "handle_chinese_chars"), true);
  options->lowercase = BoolOf(Member(normalizer, "lowercase"), true);
  options->strip_accents = BoolOf(Member(normalizer, "strip_accents"), options->lowercase);
  return absl::OkStatus();
}

absl::Status ReadModel(const std::string& path, const Json& json, TokenizerData* data) {
  const Json& model = Member(json, "model");
  const std::string type = StringOf(Member(model, "type"));
  if (type != "WordPiece" && !(type.empty() && !model.contains("merges")))
    RETURN_IF_ERROR(CheckType(path, json, "model", "WordPiece"));
  const std::string prefix = StringOf(Member(model, "continuing_subword_prefix"));
  if (prefix != "##")
    return Wrong(path, absl::StrCat("model: continuing_subword_prefix ", Quote(prefix),
                           ", only \"##\" is supported"));
  const Json& longest = Member(model, "max_input_chars_per_word");
  if (longest.is_number_unsigned())
    data->max_word_chars = std::min<uint64_t>(longest.get<uint64_t>(), 1000);
  data->names.unk = StringOf(Member(model, "unk_token"));
  return ReadVocabObject(path, "model: vocab", Member(model, "vocab"), &data->tokens);
}

absl::Status ReadAddedTokens(const std::string& path, const Json& json, TokenizerData* data) {
  std::map<uint64_t, std::string> added;
  for (const Json& token : Member(json, "added_tokens")) {
    const std::string content = StringOf(Member(token, "content"));
    const Json& id = Member(token, "id");
    if (content.empty() || !id.is_number_unsigned())
      return Wrong(path, "added_tokens: content and id expected");
    const bool normalized = !data->byte_level && BoolOf(Member(token, "normalized"), false);
    if (normalized || BoolOf(Member(token, "single_word"), false)) {
      return Wrong(path, absl::StrCat("added_tokens: ", Quote(content), ": ",
                             normalized ? "normalized" : "single_word", " is not supported"));
    }
    added[id.get<uint64_t>()] = content;
    if (BoolOf(Member(token, "lstrip"), false)) data->lstrip.push_back(content);
    if (BoolOf(Member(token, "rstrip"), false)) data->rstrip.push_back(content);
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

// Is `items` of a template exactly `expected`: names of special tokens, and "A" or "B"; with the
// types given?
bool IsTemplate(const Json& items, const std::vector<std::pair<std::string, int>>& expected) {
  if (!items.is_array() || items.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool sequence = items[i].is_object() && items[i].contains("Sequence");
    const Json& item = Member(items[i], sequence ? "Sequence" : "SpecialToken");
    const Json& type = Member(item, "type_id");
    if (StringOf(Member(item, "id")) != expected[i].first || !type.is_number_integer() ||
        type.get<int64_t>() != expected[i].second)
      return false;
  }
  return true;
}

absl::Status ReadPostProcessor(const std::string& path, const Json& json, SpecialNames* names) {
  const Json& processor = Member(json, "post_processor");
  if (StringOf(Member(processor, "type")) == "BertProcessing") {
    const auto first = [](const Json& pair) {
      return pair.is_array() && !pair.empty() ? StringOf(pair[0]) : std::string();
    };
    names->cls = first(Member(processor, "cls")), names->sep = first(Member(processor, "sep"));
  } else {
    RETURN_IF_ERROR(CheckType(path, json, "post_processor", "TemplateProcessing"));
    const Json& single = Member(processor, "single");
    if (single.is_array() && single.size() == 3) {
      names->cls = StringOf(Member(Member(single[0], "SpecialToken"), "id"));
      names->sep = StringOf(Member(Member(single[2], "SpecialToken"), "id"));
    }
    const std::string &cls = names->cls, &sep = names->sep;
    if (!IsTemplate(single, {{cls, 0}, {"A", 0}, {sep, 0}}) ||
        !IsTemplate(
            Member(processor, "pair"), {{cls, 0}, {"A", 0}, {sep, 0}, {"B", 1}, {sep, 1}})) {
      return Wrong(
          path, "post_processor: template is not BERT's, [CLS] A [SEP] and [CLS] A [SEP] B [SEP]");
    }
  }
  return names->cls.empty() || names->sep.empty()
             ? Wrong(path, "post_processor: cls and sep expected")
             : absl::OkStatus();
}

bool Holds(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

OrderedJson TemplateItem(const char* kind, const std::string& id, int type) {
  return {{kind, {{"id", id}, {"type_id", type}}}};
}

OrderedJson PostProcessor(const SpecialNames& names, const std::map<std::string, int32_t>& ids) {
  const auto special = [&](const std::string& name, int type) {
    return TemplateItem("SpecialToken", name, type);
  };
  const OrderedJson a = TemplateItem("Sequence", "A", 0), b = TemplateItem("Sequence", "B", 1);
  OrderedJson tokens = OrderedJson::object();
  for (const std::string& name : {names.cls, names.sep}) {
    tokens[name] = {{"id", name}, {"ids", OrderedJson::array({ids.at(name)})},
        {"tokens", OrderedJson::array({name})}};
  }
  return {{"type", "TemplateProcessing"},
      {"single", OrderedJson::array({special(names.cls, 0), a, special(names.sep, 0)})},
      {"pair", OrderedJson::array(
                   {special(names.cls, 0), a, special(names.sep, 0), b, special(names.sep, 1)})},
      {"special_tokens", tokens}};
}

OrderedJson StripAccents(const NormalizerOptions& options) {
  return options.strip_accents == options.lowercase ? OrderedJson(nullptr)
                                                    : OrderedJson(options.strip_accents);
}

void PutNames(const SpecialNames& names, OrderedJson* json) {
  const std::pair<const char*, const std::string*> all[] = {{"cls_token", &names.cls},
      {"mask_token", &names.mask}, {"pad_token", &names.pad}, {"sep_token", &names.sep},
      {"unk_token", &names.unk}};
  for (const auto& [key, name] : all) {
    if (!name->empty()) (*json)[key] = *name;
  }
}

}  // namespace

absl::StatusOr<TokenizerData> ReadTokenizerJson(const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  TokenizerData data;
  if (IsByteLevel(json)) {
    RETURN_IF_ERROR(ReadByteLevel(path, json, &data));
    RETURN_IF_ERROR(ReadAddedTokens(path, json, &data));
    return data;
  }
  if (json.contains("<s>") || json.contains("[CLS]"))
    return Wrong(path, "tokens without a tokenizer around them; name the folder with it");
  RETURN_IF_ERROR(ReadNormalizer(path, json, &data.options));
  RETURN_IF_ERROR(CheckType(path, json, "pre_tokenizer", "BertPreTokenizer"));
  RETURN_IF_ERROR(ReadModel(path, json, &data));
  RETURN_IF_ERROR(ReadAddedTokens(path, json, &data));
  RETURN_IF_ERROR(ReadPostProcessor(path, json, &data.names));
  return data;
}

absl::Status ReadTokenizerConfig(const std::string& path, bool normalizer, TokenizerData* data) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  if (normalizer) {
    data->options.lowercase = BoolOf(Member(json, "do_lower_case"), data->options.lowercase);
    data->options.strip_accents = BoolOf(Member(json, "strip_accents"), data->options.lowercase);
    data->options.chinese_chars = BoolOf(Member(json, "tokenize_chinese_chars"), true);
  }
  SpecialNames& names = data->names;
  const std::pair<const char*, std::string*> all[] = {{"cls_token", &names.cls},
      {"mask_token", &names.mask}, {"pad_token", &names.pad}, {"sep_token", &names.sep},
      {"unk_token", &names.unk}};
  for (const auto& [key, name] : all) {
    if (name->empty()) *name = TokenOf(Member(json, key));
  }
  return absl::OkStatus();
}

std::string TokenizerJson(const TokenizerData& data, const std::vector<int32_t>& special_ids) {
  OrderedJson added = OrderedJson::array(), vocab = OrderedJson::object();
  std::map<std::string, int32_t> ids;
  std::map<int32_t, bool> all;  // special?
  for (const int32_t id : data.added) all[id] = false;
  for (const int32_t id : special_ids) all[id] = true, ids[data.tokens[id]] = id;
  for (const auto& [id, special] : all) {
    added.push_back({{"id", id}, {"content", data.tokens[id]}, {"single_word", false},
        {"lstrip", Holds(data.lstrip, data.tokens[id])},
        {"rstrip", Holds(data.rstrip, data.tokens[id])}, {"normalized", false},
        {"special", special}});
  }
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();  // operator[] would search it from the
                                                            // start each time
  for (size_t id = 0; id < data.tokens.size(); ++id)
    entries.emplace_back(data.tokens[id], static_cast<int64_t>(id));
  if (data.byte_level) return ByteLevelJson(data, ids, std::move(added), std::move(vocab));
  const OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", {{"type", "BertNormalizer"}, {"clean_text", data.options.clean_text},
                         {"handle_chinese_chars", data.options.chinese_chars},
                         {"strip_accents", StripAccents(data.options)},
                         {"lowercase", data.options.lowercase}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", PostProcessor(data.names, ids)},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
          {{"type", "WordPiece"}, {"unk_token", data.names.unk},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", data.max_word_chars}, {"vocab", std::move(vocab)}}}};
  return Dump(json);
}

std::string TokenizerConfigJson(const TokenizerData& data, int64_t max_length) {
  if (data.byte_level) {
    OrderedJson json = ByteLevelConfig(data, max_length);
    PutNames(data.names, &json);
    return Dump(json);
  }
  OrderedJson json = {{"backend", "tokenizers"}, {"do_lower_case", data.options.lowercase},
      {"model_max_length", max_length}, {"strip_accents", StripAccents(data.options)},
      {"tokenize_chinese_chars", data.options.chinese_chars}, {"tokenizer_class", "BertTokenizer"}};
  PutNames(data.names, &json);
  return Dump(json);
}

std::string SpecialTokensMapJson(const TokenizerData& data) {
  OrderedJson json = OrderedJson::object();
  PutNames(data.names, &json);
  return Dump(json);
}

}  // namespace cloze
