#include "tools/input_json.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/json.h"

namespace cloze {
namespace {

constexpr uint32_t kString = 1u << JsonValue::kString, kNumber = 1u << JsonValue::kNumber;

absl::Status Expected(absl::string_view name, absl::string_view what) {
  return Error(Exit::kData, "\"", name, "\": expected ", what);
}

absl::Status TakeText(absl::string_view name, JsonValue& value, std::string* out) {
  *out = std::move(value.text);
  return value.kind == JsonValue::kString ? absl::OkStatus() : Expected(name, "a string");
}

absl::Status TakeIds(const JsonValue& value, std::vector<int32_t>* ids) {
  if (!value.IsListOf(kNumber)) return Expected("ids", "a list of token ids");
  for (const std::string& item : value.items) {
    if (int32_t id = -1; absl::SimpleAtoi(item, &id) && id >= 0) {
      ids->push_back(id);
    } else {
      return Error(Exit::kData, "\"ids\": ", Quote(item), " is not a token id");
    }
  }
  return absl::OkStatus();
}

absl::Status TakeId(JsonValue& value, std::string* id) {
  if (value.kind == JsonValue::kList || value.kind == JsonValue::kOther)
    return Expected("id", "a string or number");
  *id = value.kind == JsonValue::kString ? JsonString(value.text) : std::move(value.text);
  return absl::OkStatus();
}

enum Name { kText, kTextA, kPair, kTextB, kWords, kTokens, kIds, kId, kAdapter };

}  // namespace

absl::Status ParseInputJson(const std::string& json, InputRecord* record) {
  static const std::vector<std::string> kNames = {
      "text", "text_a", "text_pair", "text_b", "words", "tokens", "ids", "id", "adapter"};
  std::vector<JsonValue> values;
  RETURN_IF_ERROR(ParseJsonLine(json, kNames, &values));
  if (values[kPair].kind == JsonValue::kNull) values[kPair].kind = JsonValue::kMissing;
  if (values[kTextB].kind == JsonValue::kNull) values[kTextB].kind = JsonValue::kMissing;
  bool given[kAdapter + 1];
  for (const Name name : {kText, kTextA, kPair, kTextB, kWords, kTokens, kIds, kId, kAdapter})
    given[name] = values[name].kind != JsonValue::kMissing;
  for (const Name name : {kText, kPair, kWords}) {  // each has a second spelling
    const Name other = static_cast<Name>(name + 1);
    if (given[name] && given[other])
      return Error(Exit::kData, "\"", kNames[other], "\" is given beside \"", kNames[name], "\"");
    if (given[other]) std::swap(values[name], values[other]);
    given[name] |= given[other];
  }
  if (given[kText]) RETURN_IF_ERROR(TakeText("text", values[kText], &record->text));
  if (given[kPair]) RETURN_IF_ERROR(TakeText("text_pair", values[kPair], &record->text_pair));
  if (given[kWords]) {
    if (!values[kWords].IsListOf(kString)) return Expected("words", "a list of strings");
    record->words = std::move(values[kWords].items);
  }
  if (given[kIds]) RETURN_IF_ERROR(TakeIds(values[kIds], &record->ids));
  if (given[kId]) RETURN_IF_ERROR(TakeId(values[kId], &record->id));
  if (values[kAdapter].kind == JsonValue::kString) record->adapter = values[kAdapter].text;
  if (given[kPair] && !given[kText])
    return Error(Exit::kData, "\"text_pair\" is given without \"text\"");
  if (!given[kText] && !given[kWords] && !given[kIds])
    return Error(Exit::kData, "no member \"text\", \"words\" or \"ids\"");
  record->kind = given[kPair]    ? InputRecord::Kind::kPair
                 : given[kText]  ? InputRecord::Kind::kText
                 : given[kWords] ? InputRecord::Kind::kWords
                                 : InputRecord::Kind::kIds;
  return absl::OkStatus();
}

}  // namespace cloze
