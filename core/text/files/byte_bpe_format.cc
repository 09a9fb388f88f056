// RoBERTa: ByteLevel, BPE and <s> A </s></s> B </s>; vocab.json and merges.txt. GPT-2: the same
// without special tokens around texts.
#include "absl/functional/function_ref.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

// Turns pairs of spellings into pairs of ids.
class MergeReader {
 public:
  // Adds merges of `tokens`, by id, to *merges.
  MergeReader(
      absl::Span<const std::string> tokens, std::vector<std::pair<int32_t, int32_t>>* merges)
      : merges_(*merges), ids_(tokens) {
    for (size_t id = 0; id < tokens.size(); ++id) ids_.Add(id);
  }

  // Adds a merge "left right".
  absl::Status Add(absl::string_view text) {
    const std::vector<absl::string_view> tokens = absl::StrSplit(text, ' ');
    if (tokens.size() == 2 && !tokens[0].empty() && !tokens[1].empty())
      return Add(tokens[0], tokens[1]);
    return Error(
        Exit::kData, "merge \"", Quote(text), "\": expected two tokens with a space between them");
  }
  absl::Status Add(absl::string_view left, absl::string_view right) {
    const std::string joined = absl::StrCat(left, right);
    for (const absl::string_view token : {left, right, absl::string_view(joined)}) {
      if (ids_.Find(token) >= 0) continue;
      return Error(Exit::kData, "merge of ", Quote(left), " and ", Quote(right), ": ", Quote(token),
          " is not in the vocabulary (do the two belong together?)");
    }
    if (merges_.size() >= kMaxTokens)
      return Error(Exit::kLimit, "more than ", kMaxTokens, " merges");
    merges_.emplace_back(ids_.Find(left), ids_.Find(right));
    return absl::OkStatus();
  }

 private:
  std::vector<std::pair<int32_t, int32_t>>& merges_;
  TokenIds ids_;
};

absl::Status ReadRobertaModel(const JsonFile& file, ByteBpeScheme* scheme, TokenizerData* data) {
  JsonFields fields = file.Fields("/model");
  fields.AllowOnly({"type", "dropout", "unk_token", "continuing_subword_prefix",
      "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  scheme->fuse_unknown = fields.Bool("fuse_unk", false);
  RETURN_IF_ERROR(fields.status());
  for (const char* field : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
           "byte_fallback", "ignore_merges"}) {
    const Json& value = file.Get(absl::StrCat("/model/", field));
    const bool off =
        value.is_null() || value == false || value == "" || (value.is_number() && value == 0);
    if (!off) return file.Wrong("model: ", field, " is ", Quote(value.dump()), ": not supported");
  }
  scheme->drops_unknown = file.Get("/model/unk_token").is_null();
  data->names.unk = file.String("/model/unk_token");
  RETURN_IF_ERROR(file.ReadVocab("/model/vocab", "model: vocab", &data->tokens));
  const Json& merges = file.Get("/model/merges");
  if (!merges.is_array()) return file.Wrong("model: merges: expected a list");
  MergeReader reader(data->tokens, &scheme->merges);
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& m = merges[i];  // a list of two strings, or one string
    const auto text = [](const Json& json) {
      return json.is_string() ? json.get<std::string>() : "";
    };
    const bool pair = m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string();
    const absl::Status status = pair ? reader.Add(text(m[0]), text(m[1])) : reader.Add(text(m));
    if (!status.ok()) return Annotate(status, QuotePath(file.path()), ": model: merges[", i, "]");
  }
  return absl::OkStatus();
}

absl::Status ReadRoberta(const JsonFile& file, TokenizerData* data) {
  auto scheme = std::make_shared<ByteBpeScheme>();
  data->scheme = scheme;
  RETURN_IF_ERROR(ReadTextSteps(file, "/normalizer", &data->steps));
  RETURN_IF_ERROR(file.CheckType("pre_tokenizer", "ByteLevel"));
  JsonFields fields = file.Fields("/pre_tokenizer");
  fields.AllowOnly({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  scheme->add_prefix_space = fields.Bool("add_prefix_space", true);
  if (!fields.Bool("use_regex", true)) fields.Fail("use_regex", "false is not supported");
  RETURN_IF_ERROR(fields.status());
  RETURN_IF_ERROR(ReadRobertaModel(file, scheme.get(), data));
  return CheckDecoder(file, "ByteLevel", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

bool CanWriteRoberta(const TokenizerData& data) {
  const auto first_added = data.tokens.begin() + ModelTokens(data).size();
  const bool adds_bytes = std::any_of(first_added, data.tokens.end(), [](const std::string& token) {
    return CountCodePoints(token) == 1 && BytesOfToken(token).size() == 1;
  });
  return !adds_bytes && data.normalized.empty();
}

// True if the templates are RoBERTa's and not those of GPT-2, with or without special tokens.
bool IsRoberta(const TokenizerData& data) {
  return data.templates == RobertaTemplates(data.names.cls, data.names.sep);
}

void WriteRoberta(const Tokenizer& tokenizer, OrderedJson* json) {
  const TokenizerData& data = tokenizer.data();
  const auto& scheme = SchemeOf<ByteBpeScheme>(data);
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : scheme.merges)
    merges.push_back(OrderedJson::array({data.tokens[left], data.tokens[right]}));
  const auto named = [&](const std::string& name) {
    return OrderedJson::array({name, tokenizer.id(name)});
  };
  (*json)["normalizer"] = nullptr;
  (*json)["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", scheme.add_prefix_space},
      {"trim_offsets", true}, {"use_regex", true}};
  const OrderedJson bare = {{"type", "ByteLevel"}, {"add_prefix_space", true},
      {"trim_offsets", false}, {"use_regex", true}};
  (*json)["post_processor"] = {{"type", "RobertaProcessing"}, {"sep", named(data.names.sep)},
      {"cls", named(data.names.cls)}, {"trim_offsets", data.trim_offsets},
      {"add_prefix_space", data.trim_keeps_first}};
  if (data.templates == BareTemplates()) {
    (*json)["post_processor"] = bare;
  } else if (!IsRoberta(data)) {
    (*json)["post_processor"] = TemplatesJson(
        data.templates, [&](const std::string& token) { return tokenizer.id(token); });
  }
  (*json)["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true},
      {"use_regex", true}};
  (*json)["model"] = {{"type", "BPE"}, {"dropout", nullptr},
      {"unk_token", scheme.drops_unknown ? OrderedJson(nullptr) : OrderedJson(data.names.unk)},
      {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""},
      {"fuse_unk", scheme.fuse_unknown}, {"byte_fallback", false}, {"ignore_merges", false},
      {"vocab", VocabObject(data.tokens)}, {"merges", std::move(merges)}};
}

OrderedJson RobertaConfig(const TokenizerData& data, int64_t max_length) {
  return {{"add_prefix_space", SchemeOf<ByteBpeScheme>(data).add_prefix_space},
      {"backend", "tokenizers"}, {"bos_token", data.names.cls}, {"eos_token", data.names.sep},
      {"errors", "replace"}, {"model_max_length", max_length},
      {"tokenizer_class", IsRoberta(data) ? "RobertaTokenizer" : "GPT2Tokenizer"},
      {"trim_offsets", data.trim_offsets}};
}

absl::StatusOr<bool> ReadRobertaConfig(const JsonFile& file, bool from_json, TokenizerData* data) {
  const bool before = SchemeOf<ByteBpeScheme>(*data).add_prefix_space;
  auto scheme = std::make_shared<ByteBpeScheme>(SchemeOf<ByteBpeScheme>(*data));
  JsonFields fields = file.Fields("");
  scheme->add_prefix_space = fields.Bool("add_prefix_space", !from_json && before);
  if (!from_json) data->trim_offsets = fields.Bool("trim_offsets", data->trim_offsets);
  RETURN_IF_ERROR(fields.status());
  const bool changed = scheme->add_prefix_space != before;
  if (changed) data->trim_keeps_first = scheme->add_prefix_space;
  data->scheme = scheme;
  return changed;
}

std::string VocabJson(const TokenizerData& data) {
  return VocabObject(data.tokens).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

// Calls `add` for each line with a merge.
absl::Status ReadMergesFile(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& line)> add) {
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path, 1 << 16));
  std::string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
    if (!more) return absl::OkStatus();
    if (line.rfind("#version", 0) == 0 || line.empty()) continue;
    if (absl::Status status = add(line); !status.ok())
      return Annotate(status, QuotePath(path), ":", lines.line_number());
  }
}

absl::Status ReadRobertaVocab(const std::vector<std::string>& paths, bool, TokenizerData* data) {
  ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Read(paths[0]));
  RETURN_IF_ERROR(file.ReadVocab("", "tokens", &data->tokens));
  auto scheme = std::make_shared<ByteBpeScheme>();
  data->scheme = scheme;
  data->trim_offsets = true;
  MergeReader reader(data->tokens, &scheme->merges);
  RETURN_IF_ERROR(
      ReadMergesFile(paths[1], [&](const std::string& line) { return reader.Add(line); }));
  data->lstrip = {"<mask>"};  // as RobertaTokenizer sets it
  return absl::OkStatus();
}

// Other programs read merges.txt, so it must say the same as tokenizer.json.
absl::Status CheckMergesFile(const std::string& folder, const TokenizerData& data) {
  const std::string path = JoinPath(folder, "merges.txt");
  if (!PathExists(path)) return absl::OkStatus();
  const auto& merges = SchemeOf<ByteBpeScheme>(data).merges;
  const size_t count = merges.size();
  size_t next = 0;
  RETURN_IF_ERROR(ReadMergesFile(path, [&](const std::string& line) {
    std::string expected = "no more merges";
    if (next < count) {
      const auto [left, right] = merges[next++];
      expected = absl::StrCat(data.tokens[left], " ", data.tokens[right]);
      if (line == expected) return absl::OkStatus();
    }
    return Error(Exit::kMismatch, "merge ", Quote(line), ": expected ", Quote(expected),
        ", as in tokenizer.json");
  }));
  if (next == count) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(path), ": ends after ", next, " merges: expected ", count,
      ", as in tokenizer.json");
}

constexpr VocabFile kRobertaFiles[] = {{"vocab.json", VocabJson}, {"merges.txt", MergesText}};

}  // namespace

constinit const TokenizerFormat kByteBpeFormat = {"BPE", ReadRoberta, true, CanWriteRoberta,
    WriteRoberta, RobertaConfig, ReadRobertaConfig, kRobertaFiles, ReadRobertaVocab,
    CheckMergesFile};

}  // namespace cloze
