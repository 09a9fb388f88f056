#include "core/text/tokenizer/tokenizer_data.h"

#include "core/base/text.h"
#include "core/text/tokenizer/schemes.h"

namespace cloze {
namespace {

constexpr int64_t kMaxTokenBytes = 1024;
constexpr int64_t kMaxVocabBytes = int64_t{128} << 20;
constexpr size_t kMaxAddedBytes = 256;  // added tokens are looked for at each byte of a text

// Fills empty names with the first of their spellings that is a token, and checks the others.
absl::Status FindSpecials(const std::string& file, const TokenIds& ids, SpecialNames* names) {
  struct Role {
    absl::string_view role;
    std::vector<absl::string_view> spellings;
    bool required;
    std::string* name;
  };
  for (const auto& [role, spellings, required, name] :
      {Role{"unknown", {"[UNK]", "<unk>", kEndOfText}, true, &names->unk},
          Role{"class", {"[CLS]", "<class>", "<s>", kEndOfText}, true, &names->cls},
          Role{"separator", {"[SEP]", "<sep>", "</s>", kEndOfText}, true, &names->sep},
          Role{"padding", {"[PAD]", "<pad>"}, false, &names->pad},
          Role{"mask", {"[MASK]", "<mask>"}, false, &names->mask}}) {
    if (!name->empty() && ids.Find(*name) < 0) {
      return Error(Exit::kData, QuotePath(file), ": the ", role, " token ", Quote(*name),
          " is not in the vocabulary");
    }
    for (const absl::string_view spelling : spellings) {
      if (name->empty() && ids.Find(spelling) >= 0) *name = std::string(spelling);
    }
    if (name->empty() && required) {
      return Error(Exit::kData, QuotePath(file), ": no ", role, " token: expected ", spellings[0],
          " or ", spellings[1], " (is this a BERT or RoBERTa vocabulary?)");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTemplates(
    const std::string& file, const TokenIds& ids, const Templates& templates) {
  for (const auto* items : {&templates.single, &templates.pair}) {
    for (const TemplateItem& item : *items) {
      if (item.text >= 0 || ids.Find(item.token) >= 0) continue;
      return Error(Exit::kData, QuotePath(file), ": post_processor: ", Quote(item.token),
          " is not in the vocabulary");
    }
  }
  return absl::OkStatus();
}

}  // namespace

Templates BareTemplates() {
  const TemplateItem a{.text = 0}, b{.text = 1};
  return {{a}, {a, b}};
}

Templates BertTemplates(const std::string& cls, const std::string& sep) {
  const TemplateItem a{.text = 0}, b{.text = 1, .type = 1};
  return {{{cls}, a, {sep}}, {{cls}, a, {sep}, b, {.token = sep, .type = 1}}};
}

Templates RobertaTemplates(const std::string& cls, const std::string& sep) {
  const TemplateItem a{.text = 0}, b{.text = 1};
  return {{{cls}, a, {sep}}, {{cls}, a, {sep}, {sep}, b, {sep}}};
}

absl::Span<const std::string> ModelTokens(const TokenizerData& data) {
  const auto all = absl::MakeConstSpan(data.tokens);
  return data.model_tokens > 0 ? all.first(data.model_tokens) : all;
}

absl::Status CheckToken(absl::string_view token) {
  if (token.empty()) return Error(Exit::kData, "empty: expected a token");
  if (token.size() > kMaxTokenBytes) {
    return Error(Exit::kData, "token of ", token.size(), " bytes: expected at most ",
        kMaxTokenBytes, " (is this a vocabulary?)");
  }
  if (!IsUtf8(token)) return Error(Exit::kData, "token ", Quote(token), " is not UTF-8");
  if (token.find_first_of("\n\r") != absl::string_view::npos)
    return Error(Exit::kData, "token ", Quote(token), " contains a line break");
  return absl::OkStatus();
}

absl::Status CheckTokenCount(const std::string& file, int64_t tokens, int64_t bytes) {
  if (tokens <= kMaxTokens && bytes <= kMaxVocabBytes) return absl::OkStatus();
  return Error(Exit::kLimit, QuotePath(file), ": vocabulary too large: expected at most ",
      kMaxTokens, " tokens of ", kMaxVocabBytes, " bytes in all");
}

absl::StatusOr<TokenIds> CheckTokens(const TokenOrigin& origin, TokenizerData* data) {
  const auto place = [&](int64_t id) {
    return origin.lines ? absl::StrCat(QuotePath(origin.file), ":", id + 1)
                        : absl::StrCat(QuotePath(origin.file), ": token ", id);
  };
  const std::vector<std::string>& tokens = data->tokens;
  TokenIds ids(tokens);
  int64_t bytes = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string& token = tokens[id];
    if (absl::Status status = CheckToken(token); !status.ok()) return Annotate(status, place(id));
    if (const size_t first = ids.Add(id); first != id) {
      return Error(Exit::kData, place(id), ": token ", Quote(token), " is a duplicate of ",
          origin.lines ? "line " : "token ", first + origin.lines);
    }
    bytes += token.size();
  }
  RETURN_IF_ERROR(CheckTokenCount(origin.file, tokens.size(), bytes));
  for (const int32_t id : data->added) {
    if (tokens[id].size() <= kMaxAddedBytes) continue;
    return Error(Exit::kData, QuotePath(origin.file), ": added_tokens: ", Quote(tokens[id]),
        ": expected at most ", kMaxAddedBytes, " bytes");
  }
  RETURN_IF_ERROR(FindSpecials(origin.file, ids, &data->names));
  if (data->templates.single.empty()) {
    const auto& [pad, unk, cls, sep, mask] = data->names;
    data->templates = cls == kEndOfText                 ? BareTemplates()
                      : data->make_templates != nullptr ? data->make_templates(cls, sep)
                                                        : data->scheme->UsualTemplates(cls, sep);
  }
  if (data->one_type) {
    for (auto* items : {&data->templates.single, &data->templates.pair})
      for (TemplateItem& item : *items) item.type = 0;
  }
  RETURN_IF_ERROR(CheckTemplates(origin.file, ids, data->templates));
  RETURN_IF_ERROR(data->scheme->Check(origin, ids, *data));
  return ids;
}

}  // namespace cloze
