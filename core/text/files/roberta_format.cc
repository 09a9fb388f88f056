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
  explicit MergeReader(TokenizerData* data) : data_(*data), ids_(data->tokens) {
    for (size_t id = 0; id < data_.tokens.size(); ++id) ids_.Add(id);
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
    if (data_.merges.size() >= kMaxTokens)
      return Error(Exit::kLimit, "more than ", kMaxTokens, " merges");
    data_.merges.emplace_back(ids_.Find(left), ids_.Find(right));
    return absl::OkStatus();
  }

 private:
  TokenizerData& data_;
  TokenIds ids_;
};

absl::Status ReadRobertaModel(const JsonFile& file, TokenizerData* data) {
  JsonFields fields = file.Fields("/model");
  fields.AllowOnly({"type", "dropout", "unk_token", "continuing_subword_prefix",
      "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  data->fuse_unknown = fields.Bool("fuse_unk", false);
  RETURN_IF_ERROR(fields.status());
  for (const char* field : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
           "byte_fallback", "ignore_merges"}) {
    const Json& value = file.Get(absl::StrCat("/model/", field));
    const bool off =
        value.is_null() || value == false || value == "" || (value.is_number() && value == 0);
    if (!off) return file.Wrong("model: ", field, " is ", Quote(value.dump()), ": not supported");
  }
  data->drops_unknown = file.Get("/model/unk_token").is_null();
  data->names.unk = file.String("/model/unk_token");
  RETURN_IF_ERROR(file.ReadVocab("/model/vocab", "model: vocab", &data->tokens));
  const Json& merges = file.Get("/model/merges");
  if (!merges.is_array()) return file.Wrong("model: merges: expected a list");
  MergeReader reader(data);
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
  RETURN_IF_ERROR(ReadTextSteps(file, "/normalizer", &data->steps));
  RETURN_IF_ERROR(file.CheckType("pre_tokenizer", "ByteLevel"));
  JsonFields fields = file.Fields("/pre_tokenizer");
  fields.AllowOnly({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  data->add_prefix_space = fields.Bool("add_prefix_space", true);
  if (!fields.Bool("use_regex", true)) fields.Fail("use_regex", "false is not supported");
  RETURN_IF_ERROR(fields.status());
  return ReadRobertaModel(file, data);
}

// Returns a post-processor that puts special tokens around texts as data.templates says.
OrderedJson TemplatesJson(const Tokenizer& tokenizer) {
  OrderedJson special = OrderedJson::object();
  const auto list = [&](const std::vector<TemplateItem>& items) {
    OrderedJson json = OrderedJson::array();
    for (const TemplateItem& item : items) {
      const std::string id = item.text < 0 ? item.token : item.text == 0 ? "A" : "B";
      json.push_back(
          {{item.text < 0 ? "SpecialToken" : "Sequence", {{"id", id}, {"type_id", item.type}}}});
      if (item.text < 0)
        special[id] = {{"id", id}, {"ids", OrderedJson::array({tokenizer.id(id)})},
            {"tokens", OrderedJson::array({id})}};
    }
    return json;
  };
  const Templates& templates = tokenizer.data().templates;
  OrderedJson single = list(templates.single), pair = list(templates.pair);
  return {{"type", "TemplateProcessing"}, {"single", std::move(single)}, {"pair", std::move(pair)},
      {"special_tokens", std::move(special)}};
}

// True if the templates are RoBERTa's and not those of GPT-2, with or without special tokens.
bool IsRoberta(const TokenizerData& data) {
  return data.templates == RobertaTemplates(data.names.cls, data.names.sep);
}

void WriteRoberta(const Tokenizer& tokenizer, OrderedJson* json) {
  const TokenizerData& data = tokenizer.data();
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : data.merges)
    merges.push_back(OrderedJson::array({data.tokens[left], data.tokens[right]}));
  const auto named = [&](const std::string& name) {
    return OrderedJson::array({name, tokenizer.id(name)});
  };
  (*json)["normalizer"] = nullptr;
  (*json)["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", data.add_prefix_space},
      {"trim_offsets", true}, {"use_regex", true}};
  const OrderedJson bare = {{"type", "ByteLevel"}, {"add_prefix_space", true},
      {"trim_offsets", false}, {"use_regex", true}};
  (*json)["post_processor"] = {{"type", "RobertaProcessing"}, {"sep", named(data.names.sep)},
      {"cls", named(data.names.cls)}, {"trim_offsets", data.trim_offsets},
      {"add_prefix_space", data.trim_keeps_first}};
  if (data.templates == BareTemplates()) {
    (*json)["post_processor"] = bare;
  } else if (!IsRoberta(data)) {
    (*json)["post_processor"] = TemplatesJson(tokenizer);
  }
  (*json)["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true},
      {"use_regex", true}};
  (*json)["model"] = {{"type", "BPE"}, {"dropout", nullptr},
      {"unk_token", data.drops_unknown ? OrderedJson(nullptr) : OrderedJson(data.names.unk)},
      {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""},
      {"fuse_unk", data.fuse_unknown}, {"byte_fallback", false}, {"ignore_merges", false},
      {"vocab", VocabObject(data.tokens)}, {"merges", std::move(merges)}};
}

OrderedJson RobertaConfig(const TokenizerData& data, int64_t max_length) {
  return {{"add_prefix_space", data.add_prefix_space}, {"backend", "tokenizers"},
      {"bos_token", data.names.cls}, {"eos_token", data.names.sep}, {"errors", "replace"},
      {"model_max_length", max_length},
      {"tokenizer_class", IsRoberta(data) ? "RobertaTokenizer" : "GPT2Tokenizer"},
      {"trim_offsets", data.trim_offsets}};
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

absl::Status ReadRobertaVocab(const std::vector<std::string>& paths, TokenizerData* data) {
  ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Read(paths[0]));
  RETURN_IF_ERROR(file.ReadVocab("", "tokens", &data->tokens));
  MergeReader reader(data);
  RETURN_IF_ERROR(
      ReadMergesFile(paths[1], [&](const std::string& line) { return reader.Add(line); }));
  data->lstrip = {"<mask>"};  // as RobertaTokenizer sets it
  return absl::OkStatus();
}

// Other programs read merges.txt, so it must say the same as tokenizer.json.
absl::Status CheckMergesFile(const std::string& folder, const TokenizerData& data) {
  const std::string path = JoinPath(folder, "merges.txt");
  if (!PathExists(path)) return absl::OkStatus();
  const size_t count = data.merges.size();
  size_t next = 0;
  RETURN_IF_ERROR(ReadMergesFile(path, [&](const std::string& line) {
    std::string expected = "no more merges";
    if (next < count) {
      const auto [left, right] = data.merges[next++];
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

constinit const TokenizerFormat kRobertaFormat = {SubwordKind::kByteBpe, "BPE", ReadRoberta,
    WriteRoberta, RobertaConfig, kRobertaFiles, ReadRobertaVocab, CheckMergesFile};

}  // namespace cloze
