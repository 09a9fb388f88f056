#include "core/text/files/byte_level_json.h"

#include <unordered_map>

#include "core/base/file.h"

namespace cloze {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Turns pairs of spellings into pairs of ids.
class MergeReader {
 public:
  explicit MergeReader(TokenizerData* data) : data_(*data) {
    for (size_t id = 0; id < data_.tokens.size(); ++id)
      ids_.emplace(data_.tokens[id], static_cast<int32_t>(id));
  }

  // A merge as "left right".
  absl::Status Add(const std::string& text) {
    const size_t blank = text.find(' ');
    if (blank == 0 || blank == std::string::npos || blank + 1 == text.size() ||
        text.find(' ', blank + 1) != std::string::npos) {
      return Error(Exit::kData, absl::StrCat("merge \"", Quote(text),
                                    "\", two tokens with a blank between them expected"));
    }
    return Add(text.substr(0, blank), text.substr(blank + 1));
  }
  absl::Status Add(const std::string& left, const std::string& right) {
    for (const std::string& token : {left, right, left + right}) {
      if (ids_.count(token) > 0) continue;
      return Error(
          Exit::kData, absl::StrCat("merge of ", Quote(left), " and ", Quote(right), ": ",
                           Quote(token), " is not in the vocabulary; do the two belong together?"));
    }
    if (data_.merges.size() >= kMaxTokens)
      return Error(Exit::kLimit, absl::StrCat("more than ", kMaxTokens, " merges"));
    data_.merges.emplace_back(ids_.at(left), ids_.at(right));
    return absl::OkStatus();
  }

 private:
  TokenizerData& data_;
  std::unordered_map<std::string, int32_t> ids_;
};

absl::Status ReadMerges(const std::string& path, const Json& merges, TokenizerData* data) {
  if (!merges.is_array()) return Wrong(path, "model: merges: a list expected");
  MergeReader reader(data);
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& m = merges[i];
    const bool pair = m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string();
    const absl::Status status =
        pair ? reader.Add(StringOf(m[0]), StringOf(m[1])) : reader.Add(StringOf(m));
    if (!status.ok())
      return Annotate(status, absl::StrCat(QuotePath(path), ": model: merges[", i, "]"));
  }
  return absl::OkStatus();
}

absl::Status ReadBpeModel(const std::string& path, const Json& model, TokenizerData* data) {
  for (const char* field : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
           "byte_fallback", "ignore_merges"}) {
    const Json& value = Member(model, field);
    const bool off =
        value.is_null() || value == false || value == "" || (value.is_number() && value == 0);
    if (!off)
      return Wrong(path,
          absl::StrCat("model: ", field, " is ", Quote(value.dump()), ", which is not supported"));
  }
  data->drops_unknown = Member(model, "unk_token").is_null();
  data->names.unk = StringOf(Member(model, "unk_token"));
  RETURN_IF_ERROR(ReadVocabObject(path, "model: vocab", Member(model, "vocab"), &data->tokens));
  return ReadMerges(path, Member(model, "merges"), data);
}

// The names of a pair [name, id] or of an item of a template.
std::string PairName(const Json& pair) {
  return pair.is_array() && !pair.empty() ? StringOf(pair[0]) : std::string();
}

absl::Status ReadRobertaProcessor(const std::string& path, const Json& json, TokenizerData* data) {
  RETURN_IF_ERROR(CheckType(path, json, "post_processor", "RobertaProcessing"));
  const Json& processor = Member(json, "post_processor");
  data->names.cls = PairName(Member(processor, "cls")),
  data->names.sep = PairName(Member(processor, "sep"));
  data->trim_offsets = BoolOf(Member(processor, "trim_offsets"), true);
  data->trim_keeps_first = BoolOf(Member(processor, "add_prefix_space"), true);
  return data->names.cls.empty() || data->names.sep.empty()
             ? Wrong(path, "post_processor: cls and sep expected")
             : absl::OkStatus();
}

}  // namespace

bool IsByteLevel(const Json& json) {
  const Json& model = Member(json, "model");
  const std::string type = StringOf(Member(model, "type"));
  return type == "BPE" || (type.empty() && model.is_object() && model.contains("merges"));
}

absl::Status ReadByteLevel(const std::string& path, const Json& json, TokenizerData* data) {
  data->byte_level = true;
  if (const Json& normalizer = Member(json, "normalizer"); !normalizer.is_null()) {
    return Wrong(
        path, absl::StrCat("normalizer: type ", Quote(StringOf(Member(normalizer, "type"))),
                  "; a BPE is supported without one only"));
  }
  RETURN_IF_ERROR(CheckType(path, json, "pre_tokenizer", "ByteLevel"));
  const Json& pre = Member(json, "pre_tokenizer");
  data->add_prefix_space = BoolOf(Member(pre, "add_prefix_space"), true);
  if (!BoolOf(Member(pre, "use_regex"), true))
    return Wrong(path, "pre_tokenizer: use_regex false is not supported");
  RETURN_IF_ERROR(ReadBpeModel(path, Member(json, "model"), data));
  return ReadRobertaProcessor(path, json, data);
}

absl::Status ReadVocabAndMerges(
    const std::string& vocab, const std::string& merges, TokenizerData* data) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(vocab));
  data->byte_level = true;
  RETURN_IF_ERROR(ReadVocabObject(vocab, "tokens", json, &data->tokens));
  MergeReader reader(data);
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(merges, 1 << 16));
  std::string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
    if (!more) break;
    if (line.rfind("#version", 0) == 0 || line.empty()) continue;
    if (absl::Status status = reader.Add(line); !status.ok()) {
      return Annotate(status, absl::StrCat(QuotePath(merges), ":", lines.line_number()));
    }
  }
  data->lstrip = {"<mask>"};  // as RobertaTokenizer has it
  return absl::OkStatus();
}

std::string MergesText(const TokenizerData& data) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : data.merges)
    absl::StrAppend(&text, data.tokens[left], " ", data.tokens[right], "\n");
  return text;
}

std::string VocabJson(const TokenizerData& data) {
  OrderedJson vocab = OrderedJson::object();
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (size_t id = 0; id < data.tokens.size(); ++id)
    entries.emplace_back(data.tokens[id], static_cast<int64_t>(id));
  return vocab.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string ByteLevelJson(const TokenizerData& data, const std::map<std::string, int32_t>& ids,
    OrderedJson added, OrderedJson vocab) {
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : data.merges)
    merges.push_back(OrderedJson::array({data.tokens[left], data.tokens[right]}));
  const auto named = [&](const std::string& name) {
    return OrderedJson::array({name, ids.at(name)});
  };
  const OrderedJson json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", std::move(added)}, {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", data.add_prefix_space},
                            {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", {{"type", "RobertaProcessing"}, {"sep", named(data.names.sep)},
                             {"cls", named(data.names.cls)}, {"trim_offsets", data.trim_offsets},
                             {"add_prefix_space", data.trim_keeps_first}}},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true},
                      {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"dropout", nullptr},
                    {"unk_token",
                        data.drops_unknown ? OrderedJson(nullptr) : OrderedJson(data.names.unk)},
                    {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""},
                    {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
                    {"vocab", std::move(vocab)}, {"merges", std::move(merges)}}}};
  return Dump(json);
}

OrderedJson ByteLevelConfig(const TokenizerData& data, int64_t max_length) {
  return {{"add_prefix_space", data.add_prefix_space}, {"backend", "tokenizers"},
      {"bos_token", data.names.cls}, {"eos_token", data.names.sep}, {"errors", "replace"},
      {"model_max_length", max_length}, {"tokenizer_class", "RobertaTokenizer"},
      {"trim_offsets", data.trim_offsets}};
}

}  // namespace cloze
