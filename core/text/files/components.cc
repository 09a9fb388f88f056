// The components of tokenizer.json that several kinds of tokenizers have: the steps of a normalizer
// and the post-processor.
#include "absl/strings/escaping.h"
#include "core/text/files/formats.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr char kSteps[] =
    "Sequence, Lowercase, Strip, StripAccents, Replace, NFC, NFD, NFKC, NFKD or Precompiled";

absl::Status ReadReplace(const JsonFile& file, const std::string& at, TextSteps* steps) {
  RETURN_IF_ERROR(file.AllowOnly(at, {"type", "pattern", "content"}));
  if (!file.Get(at + "/content").is_string() || file.Get(at + "/pattern").size() != 1)
    return file.Wrong("normalizer: Replace: expected one pattern and content");
  const std::string text = file.String(at + "/pattern/String"),
                    regex = file.String(at + "/pattern/Regex"),
                    content = file.String(at + "/content");
  const bool only_spaces = regex == " {2,}", spaces = regex == "\\s{2,}|[\\n\\r\\t]";
  if (!text.empty()) {
    steps->push_back(MakeReplace(text, content));
  } else if (only_spaces || spaces) {
    steps->push_back(MakeReplaceRuns(spaces, content));
  } else {
    return file.Wrong("normalizer: Replace: pattern ", Quote(file.Get(at + "/pattern").dump()),
        " is not supported: expected a String, or the Regex \" {2,}\" or "
        "\"\\s{2,}|[\\n\\r\\t]\"");
  }
  return absl::OkStatus();
}

absl::Status ReadCharsmap(const JsonFile& file, const std::string& at, TextSteps* steps) {
  RETURN_IF_ERROR(file.AllowOnly(at, {"type", "precompiled_charsmap"}));
  std::string table;
  const std::string base64 = file.String(at + "/precompiled_charsmap");
  if (!absl::Base64Unescape(base64, &table))
    return file.Wrong("normalizer: precompiled_charsmap: expected base64");
  if (table.empty()) return absl::OkStatus();
  auto made = MakeCharsmap(std::move(table));
  if (!made.ok()) return Annotate(made.status(), QuotePath(file.path()), ": normalizer");
  steps->push_back(*std::move(made));
  return absl::OkStatus();
}

// Returns the step of a type without settings; null for other types.
std::shared_ptr<const TextStep> PlainStep(const std::string& type) {
  if (type == "Lowercase") return MakeLowercase();
  if (type == "StripAccents") return MakeDrop(IsCombining);
  if (type == "NFC") return MakeNormalForm(NormalForm::kNfc);
  if (type == "NFD") return MakeNormalForm(NormalForm::kNfd);
  if (type == "NFKC") return MakeNormalForm(NormalForm::kNfkc);
  return type == "NFKD" ? MakeNormalForm(NormalForm::kNfkd) : nullptr;
}

// True if `id` is the id of `token` in the vocabulary.
bool IsIdOf(const Json& id, const std::string& token, const std::vector<std::string>& tokens) {
  return id.is_number_unsigned() && id < tokens.size() && tokens[id.get<size_t>()] == token;
}

absl::Status WrongId(const JsonFile& file, const std::string& token) {
  return file.Wrong("post_processor: special token ", Quote(token),
      ": expected its one id, which must be that of the vocabulary");
}

// Appends the template's items, whose special tokens must have the ids of `tokens`, to *items.
absl::Status ReadTemplate(const JsonFile& file, const std::string& at, bool pair,
    const std::vector<std::string>& tokens, std::vector<TemplateItem>* items) {
  int texts[] = {0, 0};  // how often A and B occur
  for (size_t i = 0; i < file.Get(at).size(); ++i) {
    const std::string item = absl::StrCat(at, "/", i), special = item + "/SpecialToken/id",
                      text = file.String(item + "/Sequence/id");
    RETURN_IF_ERROR(file.AllowOnly(item, {"SpecialToken", "Sequence"}));
    RETURN_IF_ERROR(
        file.AllowOnly(item + (text.empty() ? "/SpecialToken" : "/Sequence"), {"id", "type_id"}));
    const Json& type = file.Get(item + (text.empty() ? "/SpecialToken" : "/Sequence") + "/type_id");
    TemplateItem made{.token = file.String(special),
        .text = text == "A"           ? 0
                : text == "B" && pair ? 1
                                      : -1};
    if ((made.text < 0) == made.token.empty() || !type.is_number_unsigned() || type > 1)
      return file.Wrong(
          "post_processor: item ", i, ": expected a special token, A or B of type 0 or 1");
    made.type = type.get<int32_t>();
    if (made.text >= 0) ++texts[made.text];
    if (made.text < 0) {
      // The token's own id is what the file puts around texts.
      const Json& known = file.Get("/post_processor/special_tokens");
      const Json& entry = JsonMember(known, made.token.c_str());
      const Json& ids = JsonMember(entry, "ids");
      if (!ids.is_array() || ids.size() != 1 || !IsIdOf(ids[0], made.token, tokens))
        return WrongId(file, made.token);
    }
    items->push_back(std::move(made));
  }
  if (texts[0] == 1 && texts[1] == (pair ? 1 : 0)) return absl::OkStatus();
  return file.Wrong(
      "post_processor: ", pair ? "pair: expected A and B" : "single: expected A", " once");
}

}  // namespace

absl::Status ReadTextSteps(const JsonFile& file, const std::string& at, TextSteps* steps) {
  const std::string type = file.String(at + "/type");
  if (file.Get(at).is_null()) return absl::OkStatus();
  if (type == "Sequence") {
    RETURN_IF_ERROR(file.AllowOnly(at, {"type", "normalizers"}));
    if (!file.Get(at + "/normalizers").is_array())
      return file.Wrong("normalizer: normalizers: expected a list");
    for (size_t i = 0; i < file.Get(at + "/normalizers").size(); ++i)
      RETURN_IF_ERROR(ReadTextSteps(file, absl::StrCat(at, "/normalizers/", i), steps));
  } else if (type == "Strip") {
    RETURN_IF_ERROR(file.AllowOnly(at, {"type", "strip_left", "strip_right"}));
    JsonFields fields = file.Fields(at);
    const bool left = fields.Bool("strip_left", true), right = fields.Bool("strip_right", true);
    RETURN_IF_ERROR(fields.status());
    steps->push_back(MakeStrip(left, right));
  } else if (type == "Replace") {
    return ReadReplace(file, at, steps);
  } else if (type == "Precompiled") {
    return ReadCharsmap(file, at, steps);
  } else if (const auto step = PlainStep(type); step != nullptr) {
    RETURN_IF_ERROR(file.AllowOnly(at, {"type"}));
    steps->push_back(step);
  } else {
    return file.Wrong(
        "normalizer: type ", type.empty() ? "missing" : Quote(type), ": expected ", kSteps);
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const JsonFile& file, TokenizerData* data) {
  const std::string at = "/post_processor", type = file.String(at + "/type");
  SpecialNames& names = data->names;
  const bool trims = type == "RobertaProcessing" || type == "ByteLevel";  // only these
  data->trim_offsets = trims && file.Bool(at + "/trim_offsets", true);
  data->trim_keeps_first = file.Bool(at + "/add_prefix_space", true);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    names.cls = file.String(at + "/cls/0"), names.sep = file.String(at + "/sep/0");
    if (names.cls.empty() || names.sep.empty())
      return file.Wrong("post_processor: expected cls and sep");
    for (const auto& [field, name] :
        {std::pair("/cls/1", &names.cls), std::pair("/sep/1", &names.sep)}) {
      if (!IsIdOf(file.Get(at + field), *name, data->tokens)) return WrongId(file, *name);
    }
    RETURN_IF_ERROR(
        type == "BertProcessing"
            ? file.AllowOnly(at, {"type", "sep", "cls"})
            : file.AllowOnly(at, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    JsonFields fields = file.Fields(at);
    for (const char* field : {"trim_offsets", "add_prefix_space"}) {
      // Without one, Hugging Face reads the file as BertProcessing.
      const Json* flag = fields.Find(field);
      if (type == "RobertaProcessing" && (flag == nullptr || !flag->is_boolean()))
        fields.Fail(field, "expected true or false");
    }
    RETURN_IF_ERROR(fields.status());
    const auto make = type == "BertProcessing" ? BertTemplates : RobertaTemplates;
    data->templates = make(names.cls, names.sep);
    return absl::OkStatus();
  }
  if (type == "ByteLevel" && data->scheme->type() == absl::string_view("BPE")) {
    JsonFields fields = file.Fields(at);
    fields.AllowOnly({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    for (const char* field : {"add_prefix_space", "trim_offsets", "use_regex"})
      fields.Bool(field, true);
    RETURN_IF_ERROR(fields.status());
    data->templates = BareTemplates();
    return absl::OkStatus();
  }
  if (type != "TemplateProcessing") {
    return file.Wrong("post_processor: type ", type.empty() ? "missing" : Quote(type),
        ": expected TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
  }
  RETURN_IF_ERROR(file.AllowOnly(at, {"type", "single", "pair", "special_tokens"}));
  Templates& templates = data->templates;
  RETURN_IF_ERROR(ReadTemplate(file, at + "/single", false, data->tokens, &templates.single));
  RETURN_IF_ERROR(ReadTemplate(file, at + "/pair", true, data->tokens, &templates.pair));
  names.cls = templates.single.front().token, names.sep = templates.single.back().token;
  return absl::OkStatus();
}

OrderedJson TemplatesJson(
    const Templates& templates, absl::FunctionRef<int32_t(const std::string&)> id_of) {
  OrderedJson special = OrderedJson::object();
  const auto list = [&](const std::vector<TemplateItem>& items) {
    OrderedJson json = OrderedJson::array();
    for (const TemplateItem& item : items) {
      const std::string id = item.text < 0 ? item.token : item.text == 0 ? "A" : "B";
      json.push_back(
          {{item.text < 0 ? "SpecialToken" : "Sequence", {{"id", id}, {"type_id", item.type}}}});
      if (item.text < 0)
        special[id] = {{"id", id}, {"ids", OrderedJson::array({id_of(id)})},
            {"tokens", OrderedJson::array({id})}};
    }
    return json;
  };
  OrderedJson single = list(templates.single), pair = list(templates.pair);
  return {{"type", "TemplateProcessing"}, {"single", std::move(single)}, {"pair", std::move(pair)},
      {"special_tokens", std::move(special)}};
}

absl::Status CheckDecoder(
    const JsonFile& file, const char* type, absl::Span<const absl::string_view> known) {
  if (file.Get("/decoder").is_null()) return absl::OkStatus();
  RETURN_IF_ERROR(file.CheckType("decoder", type));
  return file.AllowOnly("/decoder", known);
}

}  // namespace cloze
