// BERT: BertNormalizer, BertPreTokenizer, WordPiece and [CLS] A [SEP] B [SEP]; vocab.txt.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

absl::Status ReadBert(const JsonFile& file, TokenizerData* data) {
  auto scheme = std::make_shared<WordPieceScheme>();
  data->scheme = scheme;
  RETURN_IF_ERROR(file.CheckType("normalizer", "BertNormalizer"));
  JsonFields fields = file.Fields("/normalizer");
  fields.AllowOnly({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  NormalizerOptions& options = scheme->options;
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
    scheme->max_word_chars = std::min<uint64_t>(longest.get<uint64_t>(), 1'000'000);
  data->names.unk = file.String("/model/unk_token");
  RETURN_IF_ERROR(file.ReadVocab("/model/vocab", "model: vocab", &data->tokens));
  RETURN_IF_ERROR(CheckDecoder(file, "WordPiece", {"type", "prefix", "cleanup"}));
  if (file.Get("/decoder").is_null()) return absl::OkStatus();
  JsonFields decoder = file.Fields("/decoder");
  decoder.AllowValues("prefix", {"##"});
  return decoder.status();
}

// transformers' BertTokenizer has the usual values of both.
bool CanWriteBert(const TokenizerData& data) {
  const auto& scheme = SchemeOf<WordPieceScheme>(data);
  return scheme.options.clean_text && scheme.max_word_chars == WordPieceScheme().max_word_chars;
}

// In the file, null stands for the value of `lowercase`.
OrderedJson StripAccents(const NormalizerOptions& options) {
  return options.strip_accents == options.lowercase ? OrderedJson(nullptr)
                                                    : OrderedJson(options.strip_accents);
}

void WriteBert(const Tokenizer& tokenizer, OrderedJson* json) {
  const TokenizerData& data = tokenizer.data();
  const auto& scheme = SchemeOf<WordPieceScheme>(data);
  const NormalizerOptions& options = scheme.options;
  (*json)["normalizer"] = {{"type", "BertNormalizer"}, {"clean_text", options.clean_text},
      {"handle_chinese_chars", options.chinese_chars}, {"strip_accents", StripAccents(options)},
      {"lowercase", options.lowercase}};
  (*json)["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  (*json)["post_processor"] = TemplatesJson(BertTemplates(data.names.cls, data.names.sep),
      [&](const std::string& token) { return tokenizer.id(token); });
  (*json)["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  (*json)["model"] = {{"type", "WordPiece"}, {"unk_token", data.names.unk},
      {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", scheme.max_word_chars},
      {"vocab", VocabObject(ModelTokens(data))}};
}

OrderedJson BertConfig(const TokenizerData& data, int64_t max_length) {
  const NormalizerOptions& options = SchemeOf<WordPieceScheme>(data).options;
  OrderedJson config = {{"backend", "tokenizers"}, {"do_lower_case", options.lowercase},
      {"model_max_length", max_length}, {"strip_accents", StripAccents(options)},
      {"tokenize_chinese_chars", options.chinese_chars}, {"tokenizer_class", "BertTokenizer"}};
  if (data.one_type) config["model_input_names"] = {"input_ids", "attention_mask"};
  return config;
}

// Beside a tokenizer.json, what the file does not say is the class's default, as in transformers.
absl::StatusOr<bool> ReadBertConfig(const JsonFile& file, bool from_json, TokenizerData* data) {
  const NormalizerOptions now = SchemeOf<WordPieceScheme>(*data).options,
                          before = from_json ? NormalizerOptions() : now;
  auto scheme = std::make_shared<WordPieceScheme>(SchemeOf<WordPieceScheme>(*data));
  NormalizerOptions& options = scheme->options;
  JsonFields fields = file.Fields("");
  options.lowercase = fields.Bool("do_lower_case", before.lowercase);
  // Unless it is given, strip_accents follows do_lower_case.
  options.strip_accents = fields.Bool("strip_accents",
      before.strip_accents == before.lowercase ? options.lowercase : before.strip_accents);
  options.chinese_chars = fields.Bool("tokenize_chinese_chars", before.chinese_chars);
  RETURN_IF_ERROR(fields.status());
  data->scheme = scheme;
  return options != now;
}

std::string VocabText(const TokenizerData& data) {
  return absl::StrCat(absl::StrJoin(data.tokens, "\n"), "\n");
}

absl::Status ReadBertVocab(
    const std::vector<std::string>& paths, bool lowercase, TokenizerData* data) {
  data->scheme = BertScheme({.strip_accents = lowercase, .lowercase = lowercase});
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

constinit const TokenizerFormat kWordPieceFormat = {"WordPiece", ReadBert, false, CanWriteBert,
    WriteBert, BertConfig, ReadBertConfig, kBertFiles, ReadBertVocab};

}  // namespace cloze
