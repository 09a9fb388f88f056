// SentencePiece's Unigram with Metaspace: XLM-R, ALBERT, DeBERTa-v3. Only in tokenizer.json.
#include "absl/strings/match.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

absl::Status ReadMetaspace(const JsonFile& file, const std::string& at, MetaspaceOptions* options) {
  if (const std::string with = file.String(at + "/replacement"); with != "▁")
    return file.Wrong("pre_tokenizer: Metaspace: replacement ", Quote(with), ": expected U+2581");
  std::string scheme = file.String(at + "/prepend_scheme");
  if (scheme.empty()) scheme = file.Bool(at + "/add_prefix_space", true) ? "always" : "never";
  using Prepend = MetaspaceOptions::Prepend;
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return file.Wrong("pre_tokenizer: Metaspace: prepend_scheme ", Quote(scheme),
        ": expected always, first or never");
  }
  options->prepend = scheme == "always"  ? Prepend::kAlways
                     : scheme == "first" ? Prepend::kFirst
                                         : Prepend::kNever;
  options->split = file.Bool(at + "/split", true);
  return absl::OkStatus();
}

// Reads a Metaspace, or a sequence of others that ends with one.
absl::Status ReadPreTokenizer(const JsonFile& file, MetaspaceOptions* options) {
  const std::string root = "/pre_tokenizer";
  const bool sequence = file.String(root + "/type") == "Sequence";
  const size_t count = sequence ? file.Get(root + "/pretokenizers").size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const std::string at = sequence ? absl::StrCat(root, "/pretokenizers/", i) : root,
                      type = file.String(at + "/type");
    const bool last = i + 1 == count;
    if (type == "Metaspace" && last) return ReadMetaspace(file, at, options);
    if (type == "WhitespaceSplit" && !last) {
      options->cuts_spaces = true;
    } else if (type == "Punctuation" && !last &&
               (file.Get(at + "/behavior").is_null() ||
                   absl::EqualsIgnoreCase(file.String(at + "/behavior"), "isolated"))) {
      options->cuts_punctuation = true;
    } else {
      return file.Wrong("pre_tokenizer: type ", type.empty() ? "missing" : Quote(type),
          ": expected Metaspace, with WhitespaceSplit or isolated Punctuation before it");
    }
  }
  return file.Wrong("pre_tokenizer: empty Sequence: expected Metaspace");
}

absl::Status ReadUnigram(const JsonFile& file, TokenizerData* data) {
  RETURN_IF_ERROR(ReadTextSteps(file, "/normalizer", &data->steps));
  RETURN_IF_ERROR(ReadPreTokenizer(file, &data->metaspace));
  data->byte_fallback = file.Bool("/model/byte_fallback", false);
  const Json& vocab = file.Get("/model/vocab");
  if (!vocab.is_array() || vocab.empty())
    return file.Wrong("model: vocab: expected a list of pieces with scores");
  if (vocab.size() > kMaxTokens)
    return Error(Exit::kLimit, QuotePath(file.path()), ": more than ", kMaxTokens, " tokens");
  for (const Json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return file.Wrong("model: vocab[", data->tokens.size(), "]: ", Quote(entry.dump()),
          ": expected a piece with its score");
    }
    data->tokens.push_back(entry[0].get<std::string>());
    data->scores.push_back(entry[1].get<double>());
  }
  const Json& unknown = file.Get("/model/unk_id");
  if (!unknown.is_number_unsigned() || unknown >= data->tokens.size()) {
    return file.Wrong("model: unk_id: ", unknown.is_null() ? "missing" : Quote(unknown.dump()),
        ": expected the id of the unknown piece, below ", data->tokens.size());
  }
  data->names.unk = data->tokens[unknown.get<size_t>()];
  return absl::OkStatus();
}

}  // namespace

constinit const TokenizerFormat kUnigramFormat = {
    .kind = SubwordKind::kUnigram, .model = "Unigram", .read = ReadUnigram};

}  // namespace cloze
