// BERT: BertNormalizer, BertPreTokenizer, WordPiece and [CLS] A [SEP] B [SEP]; vocab.txt.
#include <algorithm>

#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

absl::Status ReadNormalizer(const std::string& path, const Json& json, NormalizerOptions* options) {
  RETURN_IF_ERROR(CheckType(path, json, "normalizer", "BertNormalizer"));
  const Json& normalizer = JsonMember(json, "normalizer");
  options->clean_text = BoolOf(JsonMember(normalizer, "clean_text"), true);
  options->chinese_chars = BoolOf(JsonMember(normalizer, "handle_chinese_chars"), true);
  options->lowercase = BoolOf(JsonMember(normalizer, "lowercase"), true);
  options->strip_accents = BoolOf(JsonMember(normalizer, "strip_accents"), options->lowercase);
  return absl::OkStatus();
}

absl::Status ReadBertModel(const std::string& path, const Json& model, TokenizerData* data) {
  const std::string prefix = StringOf(JsonMember(model, "continuing_subword_prefix"));
  if (prefix != "##") {
    return Wrong(path, absl::StrCat("model: continuing_subword_prefix ", Quote(prefix),
                           " is not supported: expected \"##\""));
  }
  const Json& longest = JsonMember(model, "max_input_chars_per_word");
  if (longest.is_number_unsigned())
    data->max_word_chars = std::min<uint64_t>(longest.get<uint64_t>(), 1000);
  data->names.unk = StringOf(JsonMember(model, "unk_token"));
  return ReadVocabObject(path, "model: vocab", JsonMember(model, "vocab"), &data->tokens);
}

// An item of a template: a special token or, with `text`, "A" or "B".
struct Item {
  std::string id;
  int type = 0;
  bool text = false;
};

std::vector<Item> SingleTemplate(const SpecialNames& names) {
  return {{names.cls}, {"A", 0, true}, {names.sep}};
}

std::vector<Item> PairTemplate(const SpecialNames& names) {
  std::vector<Item> items = SingleTemplate(names);
  items.push_back({"B", 1, true});
  items.push_back({names.sep, 1});
  return items;
}

OrderedJson TemplateJson(const std::vector<Item>& items) {
  OrderedJson json = OrderedJson::array();
  for (const Item& item : items) {
    json.push_back(
        {{item.text ? "Sequence" : "SpecialToken", {{"id", item.id}, {"type_id", item.type}}}});
  }
  return json;
}

absl::Status ReadTemplate(const std::string& path, const Json& processor, SpecialNames* names) {
  const Json& single = JsonMember(processor, "single");
  if (single.is_array() && single.size() == 3) {
    names->cls = StringOf(JsonMember(JsonMember(single[0], "SpecialToken"), "id"));
    names->sep = StringOf(JsonMember(JsonMember(single[2], "SpecialToken"), "id"));
  }
  if (!names->cls.empty() && !names->sep.empty() &&
      single == Json(TemplateJson(SingleTemplate(*names))) &&
      JsonMember(processor, "pair") == Json(TemplateJson(PairTemplate(*names))))
    return absl::OkStatus();
  return Wrong(path,
      "post_processor: template is not BERT's: expected [CLS] A [SEP] and [CLS] A [SEP] B [SEP]");
}

absl::Status ReadBert(const std::string& path, const Json& json, TokenizerData* data) {
  RETURN_IF_ERROR(ReadNormalizer(path, json, &data->options));
  RETURN_IF_ERROR(CheckType(path, json, "pre_tokenizer", "BertPreTokenizer"));
  RETURN_IF_ERROR(ReadBertModel(path, JsonMember(json, "model"), data));
  const Json& processor = JsonMember(json, "post_processor");
  if (StringOf(JsonMember(processor, "type")) == "BertProcessing")
    return ReadClsAndSep(path, processor, &data->names);
  RETURN_IF_ERROR(CheckType(path, json, "post_processor", "TemplateProcessing"));
  return ReadTemplate(path, processor, &data->names);
}

// Null means: as `lowercase`.
OrderedJson StripAccents(const NormalizerOptions& options) {
  return options.strip_accents == options.lowercase ? OrderedJson(nullptr)
                                                    : OrderedJson(options.strip_accents);
}

void WriteBert(const Tokenizer& tokenizer, OrderedJson* json) {
  const TokenizerData& data = tokenizer.data();
  (*json)["normalizer"] = {{"type", "BertNormalizer"}, {"clean_text", data.options.clean_text},
      {"handle_chinese_chars", data.options.chinese_chars},
      {"strip_accents", StripAccents(data.options)}, {"lowercase", data.options.lowercase}};
  (*json)["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  OrderedJson special = OrderedJson::object();
  for (const std::string& name : {data.names.cls, data.names.sep}) {
    special[name] = {{"id", name}, {"ids", OrderedJson::array({tokenizer.id(name)})},
        {"tokens", OrderedJson::array({name})}};
  }
  (*json)["post_processor"] = {{"type", "TemplateProcessing"},
      {"single", TemplateJson(SingleTemplate(data.names))},
      {"pair", TemplateJson(PairTemplate(data.names))}, {"special_tokens", std::move(special)}};
  (*json)["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  (*json)["model"] = {{"type", "WordPiece"}, {"unk_token", data.names.unk},
      {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", data.max_word_chars},
      {"vocab", VocabObject(data.tokens)}};
}

OrderedJson BertConfig(const TokenizerData& data, int64_t max_length) {
  return {{"backend", "tokenizers"}, {"do_lower_case", data.options.lowercase},
      {"model_max_length", max_length}, {"strip_accents", StripAccents(data.options)},
      {"tokenize_chinese_chars", data.options.chinese_chars}, {"tokenizer_class", "BertTokenizer"}};
}

std::string VocabText(const TokenizerData& data) {
  std::string text;
  for (const std::string& token : data.tokens) absl::StrAppend(&text, token, "\n");
  return text;
}

absl::Status ReadBertVocab(const std::vector<std::string>& paths, TokenizerData* data) {
  const std::string& path = paths[0];
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, 1 << 16));
  std::string line;
  int64_t bytes = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    if (!more) return absl::OkStatus();
    // White space at the end is no part of a token, as in Hugging Face's reader.
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
    if (absl::Status status = CheckToken(line); !status.ok())
      return Annotate(status, QuotePath(path), ":", data->tokens.size() + 1);
    bytes += line.size();
    data->tokens.push_back(line);
    RETURN_IF_ERROR(CheckTokenCount(path, data->tokens.size(), bytes));
  }
}

constexpr VocabFile kBertFiles[] = {{"vocab.txt", VocabText}};

}  // namespace

constinit const TokenizerFormat kBertFormat = {.kind = SubwordKind::kWordPiece,
    .model = "WordPiece",
    .read = ReadBert,
    .write = WriteBert,
    .config = BertConfig,
    .vocab_files = kBertFiles,
    .token_per_line = true,
    .read_vocab = ReadBertVocab,
    .check_folder = nullptr};

}  // namespace cloze
