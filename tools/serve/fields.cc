#include "tools/serve/fields.h"

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "tasks/inference/record_loop.h"

namespace cloze {
namespace {

// A text of this many bytes has at most this many tokens, with those around it, if it is ASCII.
int64_t MaxStepTokens(const Record& record) {
  return record.text.size() + record.text_pair.size() + 5;
}

bool IsAscii(absl::string_view text) {
  return absl::c_all_of(text, [](unsigned char c) { return c < 0x80; });
}

absl::Status CheckLength(
    const Engine& engine, const Json& body, const std::string& where, const Record& record) {
  ASSIGN_OR_RETURN(const bool truncate, BoolField(body, "truncate", false));
  if (truncate || engine.kind() == kTagger[0] || engine.kind() == "question_answering")
    return absl::OkStatus();
  const int64_t longest = engine.max_tokens();
  if (MaxStepTokens(record) <= longest && IsAscii(record.text) && IsAscii(record.text_pair))
    return absl::OkStatus();
  ASSIGN_OR_RETURN(const Encoding encoding, engine.Tokenize(record));
  const int64_t tokens = std::ssize(encoding.ids);
  if (tokens <= longest) return absl::OkStatus();
  return Error(Exit::kData, where, ": ", tokens, " tokens: expected at most ", longest,
      " (\"truncate\": true cuts longer texts)");
}

}  // namespace

absl::StatusOr<bool> BoolField(const Json& body, const char* name, bool fallback) {
  const Json& value = JsonMember(body, name);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) return Error(Exit::kData, name, ": expected true or false");
  return value.get<bool>();
}

absl::StatusOr<std::string> StringField(const Json& body, const char* name) {
  const Json& value = JsonMember(body, name);
  if (value.is_null()) return "";
  if (!value.is_string()) return Error(Exit::kData, name, ": expected a string");
  return value.get<std::string>();
}

absl::StatusOr<int64_t> IntegerField(
    const Json& body, const char* name, int64_t fallback, int64_t low, int64_t high) {
  const Json& value = JsonMember(body, name);
  if (value.is_null()) return fallback;
  const bool fits =
      value.is_number_integer() && value.get<double>() >= low && value.get<double>() <= high;
  if (!fits) return Error(Exit::kData, name, ": expected an integer, ", low, " to ", high);
  return value.get<int64_t>();
}

absl::StatusOr<std::vector<std::string>> TextsField(
    const ServeContext& context, const Json& body, const char* name, bool* list) {
  const Json& value = JsonMember(body, name);
  if (list != nullptr) *list = value.is_array();
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  if (!value.is_array())
    return Error(Exit::kData, name, value.is_null() ? ": missing" : "",
        ": expected a text or a list of texts");
  if (value.empty()) return Refuse(Refusal::kEmpty, name, ": empty: expected a text");
  RETURN_IF_ERROR(CheckCount(context, name, value.size()));
  std::vector<std::string> texts;
  for (const Json& text : value) {
    if (!text.is_string())
      return Error(Exit::kData, name, ": item ", texts.size(), " is no text: expected a string");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

absl::StatusOr<ServedModel> ModelField(const ServeContext& context, const Json& body,
    absl::Span<const absl::string_view> kinds, bool only) {
  ASSIGN_OR_RETURN(const std::string name, StringField(body, "model"));
  ASSIGN_OR_RETURN(ServedModel model, context.models->Find(name, kinds));
  if (!only || absl::c_linear_search(kinds, model.engine->kind()) ||
      !JsonMember(body, "adapter").is_null())
    return model;
  return Error(Exit::kData, "model: \"", Quote(model.name), "\" is of kind ", model.engine->kind(),
      ": expected ", kinds[0]);
}

absl::Status CheckAnswers(
    const std::vector<Outcome>& outcomes, absl::Span<const absl::string_view> members) {
  for (const Outcome& outcome : outcomes) {
    const auto has = [&](absl::string_view member) {
      return outcome.answer.contains(std::string(member));
    };
    if (!absl::c_any_of(members, has))
      return Error(
          Exit::kData, "adapter: is of another kind: expected one that answers with ", members[0]);
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const ServeContext& context, const char* name, size_t count) {
  if (static_cast<int64_t>(count) <= context.limits.texts) return absl::OkStatus();
  return Error(Exit::kData, name, ": ", count, " texts: expected at most ", context.limits.texts,
      " (the server's --max-texts)");
}

absl::Status AddRecord(const ServedModel& model, const Json& body, const char* name, size_t number,
    Record record, std::vector<Record>* records) {
  ASSIGN_OR_RETURN(record.adapter, StringField(body, "adapter"));
  const std::vector<std::string>& adapters = model.engine->adapters();
  if (!record.adapter.empty() && !absl::c_linear_search(adapters, record.adapter))
    return Error(Exit::kData, "adapter: unknown, \"", Quote(record.adapter), "\": expected one of ",
        ListNames(adapters));
  const std::string where = absl::StrCat(name, number == 0 ? "" : absl::StrCat(": text ", number));
  if (IsEmpty(record)) return Refuse(Refusal::kEmpty, where, ": empty: expected a text");
  RETURN_IF_ERROR(CheckLength(*model.engine, body, where, record));
  records->push_back(std::move(record));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Record>> RecordsOf(const ServedModel& model, const Json& body,
    const char* name, std::vector<std::string> texts, const std::string* query) {
  std::vector<Record> records;
  for (size_t i = 0; i < texts.size(); ++i) {
    Record record;
    (query == nullptr ? record.text : record.text_pair) = std::move(texts[i]);
    if (query != nullptr) record.kind = Record::Kind::kPair, record.text = *query;
    RETURN_IF_ERROR(
        AddRecord(model, body, name, texts.size() == 1 ? 0 : i + 1, std::move(record), &records));
  }
  return records;
}

Work Immediate(std::string text, const char* type) {
  Work work;
  work.type = type;
  work.format = [text = std::move(text)](const std::vector<Outcome>&) { return text; };
  return work;
}

std::string JsonOfVector(absl::Span<const float> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i)
    absl::StrAppend(&out, i == 0 ? "" : ",", JsonNumber(values[i]));
  return out + "]";
}

std::string JsonOfVectors(const Outcome& outcome) {
  std::string out = "[";
  for (size_t at = 0; at < outcome.values.size(); at += outcome.columns)
    absl::StrAppend(&out, at == 0 ? "" : ",",
        JsonOfVector(absl::MakeSpan(outcome.values).subspan(at, outcome.columns)));
  return out + "]";
}

}  // namespace cloze
