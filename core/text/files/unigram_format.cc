// SentencePiece's Unigram with Metaspace: XLM-R, ALBERT, DeBERTa-v3. Only in tokenizer.json.
#include <cmath>

#include "absl/strings/match.h"
#include "core/text/files/formats.h"
#include "core/text/files/tokenizer_files.h"

namespace cloze {
namespace {

absl::Status ReadMetaspace(const JsonFile& file, const std::string& at, MetaspaceOptions* options) {
  if (const std::string with = file.String(at + "/replacement"); with != "▁")
    return file.Wrong("pre_tokenizer: Metaspace: replacement ", Quote(with), ": expected U+2581");
  JsonFields fields = file.Fields(at);
  fields.AllowOnly(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  fields.AllowValues("str_rep", {nullptr, kMetaspace});
  std::string scheme = fields.String("prepend_scheme");
  const bool prefix = fields.Bool("add_prefix_space", true);
  if (scheme.empty()) scheme = prefix ? "always" : "never";
  if (!prefix && scheme != "never") fields.Fail("add_prefix_space", "contradicts prepend_scheme");
  using Prepend = MetaspaceOptions::Prepend;
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return file.Wrong("pre_tokenizer: Metaspace: prepend_scheme ", Quote(scheme),
        ": expected always, first or never");
  }
  options->prepend = scheme == "always"  ? Prepend::kAlways
                     : scheme == "first" ? Prepend::kFirst
                                         : Prepend::kNever;
  options->split = fields.Bool("split", true);
  return fields.status();
}

// Reads a Metaspace, or a sequence of others that ends with one.
absl::Status ReadPreTokenizer(const JsonFile& file, MetaspaceOptions* options) {
  const std::string root = "/pre_tokenizer";
  const bool sequence = file.String(root + "/type") == "Sequence";
  if (sequence) RETURN_IF_ERROR(file.AllowOnly(root, {"type", "pretokenizers"}));
  const size_t count = sequence ? file.Get(root + "/pretokenizers").size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const std::string at = sequence ? absl::StrCat(root, "/pretokenizers/", i) : root,
                      type = file.String(at + "/type");
    const bool last = i + 1 == count;
    if (type == "Metaspace" && last) return ReadMetaspace(file, at, options);
    if (type == "WhitespaceSplit" && !last) {
      RETURN_IF_ERROR(file.AllowOnly(at, {"type"}));
      options->cuts_spaces = true;
    } else if (type == "Punctuation" && !last &&
               (file.Get(at + "/behavior").is_null() ||
                   absl::EqualsIgnoreCase(file.String(at + "/behavior"), "isolated"))) {
      RETURN_IF_ERROR(file.AllowOnly(at, {"type", "behavior"}));
      options->cuts_punctuation = true;
    } else {
      return file.Wrong("pre_tokenizer: type ", type.empty() ? "missing" : Quote(type),
          ": expected Metaspace, with WhitespaceSplit or isolated Punctuation before it");
    }
  }
  return file.Wrong("pre_tokenizer: empty Sequence: expected Metaspace");
}

// A Sequence spells out what Unigram's own decoder does: Replace, ByteFallback, Fuse, Strip.
absl::Status CheckUnigramDecoder(const JsonFile& file) {
  if (file.String("/decoder/type") == "Sequence")
    return file.AllowOnly("/decoder", {"type", "decoders"});
  return CheckDecoder(file, "Metaspace",
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
}

absl::Status ReadUnigram(const JsonFile& file, TokenizerData* data) {
  auto scheme = std::make_shared<UnigramScheme>();
  data->scheme = scheme;
  RETURN_IF_ERROR(ReadTextSteps(file, "/normalizer", &data->steps));
  RETURN_IF_ERROR(ReadPreTokenizer(file, &scheme->metaspace));
  JsonFields fields = file.Fields("/model");
  fields.AllowOnly({"type", "unk_id", "vocab", "byte_fallback", "fuse_unk"});
  fields.AllowValues("fuse_unk", {true});  // Unigram always does
  scheme->byte_fallback = fields.Bool("byte_fallback", false);
  RETURN_IF_ERROR(fields.status());
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
    constexpr double kMaxScore = 1e12;  // sums over a text stay finite
    const auto score = entry[1].get<double>();
    if (std::abs(score) > kMaxScore) {
      return file.Wrong("model: vocab[", data->tokens.size(), "]: score ", score,
          ": expected a number from -1e12 to 1e12");
    }
    data->tokens.push_back(entry[0].get<std::string>());
    scheme->scores.push_back(score);
  }
  const Json& unknown = file.Get("/model/unk_id");
  if (!unknown.is_number_unsigned() || unknown >= data->tokens.size()) {
    return file.Wrong("model: unk_id: ", unknown.is_null() ? "missing" : Quote(unknown.dump()),
        ": expected the id of the unknown piece, below ", data->tokens.size());
  }
  data->names.unk = data->tokens[unknown.get<size_t>()];
  return CheckUnigramDecoder(file);
}

OrderedJson AddedTokenJson(const std::string& token, int64_t id) {
  return {{"id", id}, {"content", token}, {"single_word", false}, {"lstrip", token == "<mask>"},
      {"rstrip", false}, {"normalized", false}, {"special", true}};
}

OrderedJson TypedSequence(const char* list, OrderedJson components) {
  return {{"type", "Sequence"}, {list, std::move(components)}};
}

OrderedJson NormalizerJson(const NormalizerOptions& options) {
  OrderedJson steps = OrderedJson::array();
  const auto add = [&](const char* type) { steps.push_back({{"type", type}}); };
  add(options.strip_accents ? "NFKD" : "NFKC");
  if (options.strip_accents) add("StripAccents");
  if (options.lowercase) add("Lowercase");
  if (options.strip_accents) add("NFC");
  return TypedSequence("normalizers", std::move(steps));
}

}  // namespace

absl::StatusOr<TokenizerData> NewUnigram(
    const std::vector<std::pair<std::string, double>>& pieces, const NormalizerOptions& options) {
  constexpr int kUnknown = 3;
  const auto id = [](const std::string& token) { return token == "<s>" ? 0 : 2; };
  OrderedJson added = OrderedJson::array(), vocab = OrderedJson::array();
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    added.push_back(AddedTokenJson(token, static_cast<int64_t>(added.size())));
    vocab.push_back(OrderedJson::array({token, 0.0}));
  }
  // Hugging Face's JSON parser reads numbers of more than 15 digits inexactly, which breaks ties.
  for (const auto& [piece, score] : pieces)
    vocab.push_back(OrderedJson::array({piece, std::round(score * 1e6) / 1e6}));
  const OrderedJson metaspace = {{"type", "Metaspace"}, {"replacement", kMetaspace},
      {"prepend_scheme", "always"}, {"split", true}};
  const OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", std::move(added)}, {"normalizer", NormalizerJson(options)},
      {"pre_tokenizer", TypedSequence("pretokenizers",
                            OrderedJson::array({{{"type", "WhitespaceSplit"}}, metaspace}))},
      {"post_processor", TemplatesJson(RobertaTemplates("<s>", "</s>"), id)},
      {"decoder", metaspace},
      {"model", {{"type", "Unigram"}, {"unk_id", kUnknown}, {"vocab", std::move(vocab)},
                    {"byte_fallback", false}}}};
  ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Parse("the new vocabulary", ToJsonText(json)));
  return ReadTokenizerJson(file);
}

constinit const TokenizerFormat kUnigramFormat = {"Unigram", ReadUnigram, true};

}  // namespace cloze
