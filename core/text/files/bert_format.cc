// BERT: BertNormalizer, BertPreTokenizer, WordPiece and [CLS] A [SEP] B [SEP]; vocab.txt.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

// Returns the post-processor's template for a text or for a pair.
OrderedJson TemplateJson(const SpecialNames& names, bool pair) {
  const auto item = [](const char* kind, const std::string& id, int type) {
    return OrderedJson{{kind, {{"id", id}, {"type_id", type}}}};
  };
  OrderedJson items = OrderedJson::array({item("SpecialToken", names.cls, 0),
      item("Sequence", "A", 0), item("SpecialToken", names.sep, 0)});
  if (pair) {
    items.push_back(item("Sequence", "B", 1));
    items.push_back(item("SpecialToken", names.sep, 1));
  }
  return items;
}

absl::Status ReadBert(const JsonFile& file, TokenizerData* data) {
  RETURN_IF_ERROR(file.CheckType("normalizer", "BertNormalizer"));
  JsonFields fields = file.Fields("/normalizer");
  fields.AllowOnly({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  NormalizerOptions& options = data->options;
  options.clean_text = fields.Bool("clean_text", true);
  options.chinese_chars = fields.Bool("handle_chinese_chars", true);
  options.lowercase = fields.Bool("lowercase", true);
  options.strip_accents = fields.Bool("strip_accents", options.lowercase);
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(file.CheckType("pre_tokenizer", "BertPreTokenizer"));
  RETURN_IF_ERROR(file.AllowOnly("/pre_tokenizer", {"type"}));
  RETURN_IF_ERROR(file.AllowOnly("/model",
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  if (const std::string prefix = file.String("/model/continuing_subword_prefix"); prefix != "##") {
    return file.Wrong(
        "model: continuing_subword_prefix ", Quote(prefix), " is not supported: expected \"##\"");
  }
  const Json& longest = file.Get("/model/max_input_chars_per_word");
  if (!longest.is_null() && !longest.is_number_unsigned())
    return file.Wrong("model: max_input_chars_per_word: expected a number");
  if (longest.is_number_unsigned())
    data->max_word_chars = std::min<uint64_t>(longest.get<uint64_t>(), 1'000'000);
  data->names.unk = file.String("/model/unk_token");
  return file.ReadVocab("/model/vocab", "model: vocab", &data->tokens);
}

// In the file, null stands for the value of `lowercase`.
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
      {"single", TemplateJson(data.names, false)}, {"pair", TemplateJson(data.names, true)},
      {"special_tokens", std::move(special)}};
  (*json)["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  (*json)["model"] = {{"type", "WordPiece"}, {"unk_token", data.names.unk},
      {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", data.max_word_chars},
      {"vocab", VocabObject(ModelTokens(data))}};
}

OrderedJson BertConfig(const TokenizerData& data, int64_t max_length) {
  OrderedJson config = {{"backend", "tokenizers"}, {"do_lower_case", data.options.lowercase},
      {"model_max_length", max_length}, {"strip_accents", StripAccents(data.options)},
      {"tokenize_chinese_chars", data.options.chinese_chars}, {"tokenizer_class", "BertTokenizer"}};
  if (data.one_type) config["model_input_names"] = {"input_ids", "attention_mask"};
  return config;
}

std::string VocabText(const TokenizerData& data) {
  return absl::StrCat(absl::StrJoin(data.tokens, "\n"), "\n");
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

constinit const TokenizerFormat kBertFormat = {SubwordKind::kWordPiece, "WordPiece", ReadBert,
    WriteBert, BertConfig, kBertFiles, ReadBertVocab};

}  // namespace cloze
