#include "tasks/data/record.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"

namespace cloze {
namespace {

absl::Status Expected(absl::string_view name, absl::string_view what) {
  return Error(Exit::kData, "\"", name, "\": expected ", what);
}

template <typename Words>
absl::Status ParseIds(const Words& words, absl::string_view quote, std::vector<int32_t>* ids) {
  for (const absl::string_view word : words) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0)
      return Error(Exit::kData, quote, Quote(word), quote, " is not a token id");
    ids->push_back(id);
  }
  return absl::OkStatus();
}

using Setter = absl::Status(const std::string& name, const JsonValue& value, Record* record);

template <std::string Record::*text>
absl::Status SetText(const std::string& name, const JsonValue& value, Record* record) {
  if (value.kind != JsonValue::kString) return Expected(name, "a string");
  record->*text = value.text;
  return absl::OkStatus();
}

bool IsId(const JsonValue& value) {
  return value.kind == JsonValue::kString || value.kind == JsonValue::kNumber;
}

absl::Status SetId(const std::string&, const JsonValue& value, Record* record) {
  if (value.kind > JsonValue::kString) return Expected("id", "a string or number");
  record->id = value.kind == JsonValue::kString ? JsonString(value.text) : value.text;
  return absl::OkStatus();
}

absl::Status SetWords(const std::string& name, const JsonValue& value, Record* record) {
  if (!value.IsListOf(1u << JsonValue::kString)) return Expected(name, "a list of strings");
  record->words = value.items;
  return absl::OkStatus();
}

absl::Status SetIds(const std::string& name, const JsonValue& value, Record* record) {
  if (!value.IsListOf(1u << JsonValue::kNumber)) return Expected(name, "a list of token ids");
  return Annotate(ParseIds(value.items, "", &record->ids), "\"ids\"");
}

// Types like 0 0 0 1 1.
absl::Status SetTypes(const std::string& name, const JsonValue& value, Record* record) {
  const std::vector<std::string>& types = value.items;
  const auto one = absl::c_find(types, "1");
  const bool good = types.size() == record->ids.size() &&
                    std::count(types.begin(), one, "0") == one - types.begin() &&
                    std::count(one, types.end(), "1") == types.end() - one;
  if (!good) return Expected(name, "a 0 or 1 for each of \"ids\", first all 0");
  record->second = one - types.begin();
  return absl::OkStatus();
}

// The id of documents in BEIR's layout, whose text is the title, a space and the text.
constexpr char kBeirId[] = "_id";

// The members of an object, in the order in which they are set.
enum { kId, kText, kPair, kWords, kIds, kTypes, kAdapter, kTitle, kMembers };
constexpr struct {
  const char *name, *alias;  // the alias is another usual spelling, or ""
  JsonValue::Kind missing;   // values up to this kind do not count
  Setter* set;
} kTable[kMembers] = {
    {"id", kBeirId, JsonValue::kMissing, SetId},
    {"text", "text_a", JsonValue::kMissing, SetText<&Record::text>},
    {"text_pair", "text_b", JsonValue::kNull, SetText<&Record::text_pair>},
    {"words", "tokens", JsonValue::kMissing, SetWords}, {"ids", "", JsonValue::kMissing, SetIds},
    {"token_type_ids", "", JsonValue::kMissing, SetTypes},
    {"adapter", "", JsonValue::kNull, SetText<&Record::adapter>},
    {"title", "", JsonValue::kNull, nullptr},  // only of documents in BEIR's layout
};

// A member of an object, and the name under which it was found.
struct Found {
  std::string name;
  JsonValue value;
};

// Finds the members of the object `json`: each under the name that the user has given, or that the
// training data had, or else the usual one or its alias.
absl::Status FindMembers(const std::string& json, const RecordOptions& options,
    const DataSpec& data, std::vector<Found>* members) {
  const std::string given[kMembers] = {options.id_field, options.text_field,
      options.text_pair_field},
                    trained[kMembers] = {"", data.has_text_field() ? data.text_field() : "",
                        data.text_pair_field(), data.words_field()};
  std::vector<std::string> names, found;
  std::vector<JsonValue> values;
  const auto index = [&](const std::string& name) {
    return absl::c_find(names, name) - names.begin();
  };
  for (int m = 0; m < kMembers; ++m) {
    for (const std::string& name :
        {given[m], trained[m], std::string(kTable[m].name), std::string(kTable[m].alias)})
      if (!name.empty() && index(name) == std::ssize(names)) names.push_back(name);
  }
  RETURN_IF_ERROR(ParseJsonLine(json, names, &values, &found));
  for (int m = 0; m < kMembers; ++m) {
    const std::string name = kTable[m].name, alias = kTable[m].alias;
    const auto has = [&](const std::string& usual) {
      return !usual.empty() && values[index(usual)].kind > kTable[m].missing;
    };
    std::string from = !given[m].empty() ? given[m] : trained[m] != name ? trained[m] : "";
    // A model that was trained on titles and texts encodes whole documents.
    if (m == kText && from == "title" && given[m].empty() && trained[kPair].empty() && has(name) &&
        members->at(kId).name == kBeirId)
      from = "";
    if (from.empty() || values[index(from)].kind == JsonValue::kMissing) {
      if (!given[m].empty()) {
        return Error(Exit::kData, "no member \"", Quote(from), "\"; there are \"",
            Quote(absl::StrJoin(found, "\", \"")), "\"");
      }
      if (has(name) && has(alias) && m != kId)
        return Error(Exit::kData, "\"", alias, "\" is given beside \"", name, "\"");
      // Databases write an "_id" that is an object.
      const bool other = has(alias) && (m != kId || IsId(values[index(alias)]));
      from = other && !has(name) ? alias : name;
    }
    members->push_back({from, values[index(from)]});
  }
  return absl::OkStatus();
}

absl::Status ParseObject(
    const std::string& json, const RecordOptions& options, const DataSpec& data, Record* record) {
  std::vector<Found> members;
  RETURN_IF_ERROR(FindMembers(json, options, data, &members));
  const auto has = [&](int m) { return members[m].value.kind > kTable[m].missing; };
  const bool text = has(kText), words = has(kWords) && !text,
             ids = has(kIds) && (options.ids || !(text || words));
  for (int m = 0; m < kMembers; ++m) {
    const bool used = m == kWords ? words : m == kIds ? ids : m == kTypes ? ids && has(m) : has(m);
    if (used && kTable[m].set != nullptr)
      RETURN_IF_ERROR(kTable[m].set(members[m].name, members[m].value, record));
  }
  const JsonValue& title = members[kTitle].value;
  if (text && members[kId].name == kBeirId && IsId(members[kId].value) &&
      members[kText].name == kTable[kText].name && title.kind == JsonValue::kString &&
      !title.text.empty())
    record->text = absl::StrCat(title.text, " ", record->text);
  if (has(kPair) && !text) return Error(Exit::kData, "\"text_pair\" is given without \"text\"");
  if (!text && !words && !ids)
    return Error(Exit::kData, "no member \"text\", \"words\" or \"ids\"");
  record->kind = has(kPair) ? Record::Kind::kPair
                 : text     ? Record::Kind::kText
                 : words    ? Record::Kind::kWords
                            : Record::Kind::kIds;
  return absl::OkStatus();
}

absl::Status CheckIds(const Record& record, const RecordOptions& options) {
  for (const int32_t id : record.ids) {
    if (options.vocab_size > 0 && id >= options.vocab_size) {
      return Error(Exit::kData, "token id ", id, " is not in the vocabulary, whose ids are 0 to ",
          options.vocab_size - 1);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseTextRecord(
    std::string line, const RecordOptions& options, const DataSpec& data, Record* record) {
  if (options.ids) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "{"))
      return ParseJsonRecord(std::move(line), options, data, record);
    record->kind = Record::Kind::kIds;
    RETURN_IF_ERROR(ParseIds(
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty()), "\"", &record->ids));
    return CheckIds(*record, options);
  }
  record->text = std::move(line);
  if (!options.pairs) return absl::OkStatus();
  record->kind = Record::Kind::kPair;
  const size_t tab = record->text.find('\t');
  if (tab != std::string::npos) {
    record->text_pair = record->text.substr(tab + 1);
    record->text.resize(tab);
  } else if (!absl::StripAsciiWhitespace(record->text).empty()) {
    return Error(Exit::kData, "no tab: expected two texts with a tab between them");
  } else {
    record->text.clear();
  }
  return absl::OkStatus();
}

absl::Status ParseJsonRecord(
    std::string json, const RecordOptions& options, const DataSpec& data, Record* record) {
  const absl::Status parsed = ParseObject(json, options, data, record);
  if (options.keep && (parsed.ok() || Json::parse(json, nullptr, false).is_object()))
    record->cells = {std::move(json)};
  RETURN_IF_ERROR(parsed);
  if (options.ids && record->ids.empty()) return Error(Exit::kData, "no token ids in \"ids\"");
  if (options.ids) record->kind = Record::Kind::kIds;
  return CheckIds(*record, options);
}

}  // namespace cloze
