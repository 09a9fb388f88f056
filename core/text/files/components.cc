// The components of tokenizer.json that several kinds of tokenizers have: the steps of a normalizer
// and the post-processor.
#include "absl/strings/escaping.h"
#include "core/text/files/formats.h"

namespace cloze {
namespace {

constexpr char kSteps[] =
    "Sequence, Lowercase, Strip, StripAccents, Replace, NFC, NFD, NFKC, NFKD or Precompiled";

absl::Status ReadReplace(const JsonFile& file, const std::string& at, TextSteps* steps) {
  const std::string text = file.String(at + "/pattern/String"),
                    regex = file.String(at + "/pattern/Regex"),
                    content = file.String(at + "/content");
  const bool blanks = regex == " {2,}", spaces = regex == "\\s{2,}|[\\n\\r\\t]";
  if (!text.empty()) {
    steps->push_back(MakeReplace(text, content));
  } else if (blanks || spaces) {
    steps->push_back(MakeReplaceRuns(spaces, content));
  } else {
    return file.Wrong("normalizer: Replace: pattern ", Quote(file.Get(at + "/pattern").dump()),
        " is not supported: expected a String, or the Regex \" {2,}\" or "
        "\"\\s{2,}|[\\n\\r\\t]\"");
  }
  return absl::OkStatus();
}

absl::Status ReadCharsmap(const JsonFile& file, const std::string& at, TextSteps* steps) {
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
      const Json& ids = JsonMember(JsonMember(known, made.token.c_str()), "ids");
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
    if (!file.Get(at + "/normalizers").is_array())
      return file.Wrong("normalizer: normalizers: expected a list");
    for (size_t i = 0; i < file.Get(at + "/normalizers").size(); ++i)
      RETURN_IF_ERROR(ReadTextSteps(file, absl::StrCat(at, "/normalizers/", i), steps));
  } else if (type == "Lowercase") {
    steps->push_back(MakeLowercase());
  } else if (type == "Strip") {
    steps->push_back(
        MakeStrip(file.Bool(at + "/strip_left", true), file.Bool(at + "/strip_right", true)));
  } else if (type == "StripAccents") {
    steps->push_back(MakeStripAccents());
  } else if (type == "Replace") {
    return ReadReplace(file, at, steps);
  } else if (type == "Precompiled") {
    return ReadCharsmap(file, at, steps);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    steps->push_back(MakeNormalForm(type == "NFC"    ? NormalForm::kNfc
                                    : type == "NFD"  ? NormalForm::kNfd
                                    : type == "NFKC" ? NormalForm::kNfkc
                                                     : NormalForm::kNfkd));
  } else {
    return file.Wrong(
        "normalizer: type ", type.empty() ? "missing" : Quote(type), ": expected ", kSteps);
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const JsonFile& file, TokenizerData* data) {
  const std::string at = "/post_processor", type = file.String(at + "/type");
  SpecialNames& names = data->names;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    names.cls = file.String(at + "/cls/0"), names.sep = file.String(at + "/sep/0");
    if (names.cls.empty() || names.sep.empty())
      return file.Wrong("post_processor: expected cls and sep");
    for (const auto& [field, name] :
        {std::pair("/cls/1", &names.cls), std::pair("/sep/1", &names.sep)}) {
      if (!IsIdOf(file.Get(at + field), *name, data->tokens)) return WrongId(file, *name);
    }
    const auto make = type == "BertProcessing" ? BertTemplates : RobertaTemplates;
    data->templates = make(names.cls, names.sep);
    return absl::OkStatus();
  }
  if (type == "ByteLevel" && data->kind == SubwordKind::kByteBpe) {
    data->templates = BareTemplates();
    return absl::OkStatus();
  }
  if (type != "TemplateProcessing") {
    return file.Wrong("post_processor: type ", type.empty() ? "missing" : Quote(type),
        ": expected TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
  }
  Templates& templates = data->templates;
  RETURN_IF_ERROR(ReadTemplate(file, at + "/single", false, data->tokens, &templates.single));
  RETURN_IF_ERROR(ReadTemplate(file, at + "/pair", true, data->tokens, &templates.pair));
  names.cls = templates.single.front().token, names.sep = templates.single.back().token;
  return absl::OkStatus();
}

}  // namespace cloze
