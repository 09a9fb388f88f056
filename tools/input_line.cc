// One line of text, ids or JSON as a record.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "core/base/json.h"
#include "tools/input.h"

namespace cloze {
namespace {

// The members of a line of JSON. The first six are three members with two spellings each.
enum Name { kText, kTextA, kPair, kTextB, kWords, kTokens, kIds, kTypes, kId, kAdapter };

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

// Sets record->second from types like 0 0 0 1 1.
absl::Status ParseTypes(const std::vector<std::string>& types, Record* record) {
  const auto one = std::find(types.begin(), types.end(), "1");
  const bool good = types.size() == record->ids.size() &&
                    std::count(types.begin(), one, "0") == one - types.begin() &&
                    std::count(one, types.end(), "1") == types.end() - one;
  if (!good) return Expected("token_type_ids", "a 0 or 1 for each of \"ids\", first all 0");
  record->second = one - types.begin();
  return absl::OkStatus();
}

// Finds the members that hold texts and the id under other names.
class Renamed {
 public:
  // The names that `options` gives, after `usual`.
  Renamed(const std::vector<std::string>& usual, const InputOptions& options) : names(usual) {
    const DataSpec& data = options.data;
    Add(kText, options.text_field, data.has_text_field() ? data.text_field() : "");
    Add(kPair, options.text_pair_field, data.text_pair_field());
    Add(kWords, "", data.words_field());
    Add(kId, options.id_field, "");
  }

  // Moves the values and names of the renamed members to where the usual ones are. Spellings beside
  // them are other members.
  absl::Status Apply(const std::vector<std::string>& found, std::vector<JsonValue>* values) {
    std::vector<JsonValue> moved(kAdapter);
    for (const Other& other : others_) {
      moved[other.usual] = (*values)[other.index];
      if (moved[other.usual].kind == JsonValue::kMissing && other.required) {
        return Error(Exit::kData, "no member \"", Quote(names[other.index]), "\"; there are \"",
            Quote(absl::StrJoin(found, "\", \"")), "\"");
      }
    }
    for (const Other& other : others_) {
      if (moved[other.usual].kind == JsonValue::kMissing) continue;
      if (other.usual != kId) (*values)[other.usual + 1] = {};
      (*values)[other.usual] = std::move(moved[other.usual]);
      names[other.usual] = names[other.index];
    }
    return absl::OkStatus();
  }

  std::vector<std::string> names;

 private:
  struct Other {
    Name usual;
    size_t index;  // in names
    bool required;
  };
  void Add(Name usual, const std::string& given, const std::string& trained) {
    const std::string& name = given.empty() ? trained : given;
    if (name.empty()) return;
    const size_t index = absl::c_find(names, name) - names.begin();
    if (index == names.size()) names.push_back(name);
    if (index != usual || !given.empty()) others_.push_back({usual, index, !given.empty()});
  }

  std::vector<Other> others_;
};

}  // namespace

absl::Status ParseInputLine(std::string line, const InputOptions& options, Record* record) {
  const bool ids = options.format == "ids";
  if (options.format == "jsonl" ||
      (ids && absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "{"))) {
    const absl::Status parsed = ParseInputJson(line, record, options);
    if (options.keep && (parsed.ok() || Json::parse(line, nullptr, false).is_object()))
      record->cells = {std::move(line)};
    RETURN_IF_ERROR(parsed);
    if (ids && record->ids.empty()) return Error(Exit::kData, "no token ids in \"ids\"");
  } else if (ids) {
    RETURN_IF_ERROR(ParseIds(
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty()), "\"", &record->ids));
  } else if (const size_t tab = line.find('\t'); !options.pairs) {
    record->text = std::move(line);
  } else if (tab != std::string::npos) {
    record->kind = Record::Kind::kPair;
    record->text = line.substr(0, tab);
    record->text_pair = line.substr(tab + 1);
  } else if (absl::StripAsciiWhitespace(line).empty()) {
    record->kind = Record::Kind::kPair;
  } else {
    return Error(Exit::kData, "no tab: expected two texts with a tab between them");
  }
  if (ids) record->kind = Record::Kind::kIds;
  for (const int32_t id : record->ids) {
    if (options.vocab_size > 0 && id >= options.vocab_size) {
      return Error(Exit::kData, "token id ", id, " is not in the vocabulary, whose ids are 0 to ",
          options.vocab_size - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status ParseInputJson(const std::string& json, Record* record, const InputOptions& options) {
  static const std::vector<std::string> kNames = {"text", "text_a", "text_pair", "text_b", "words",
      "tokens", "ids", "token_type_ids", "id", "adapter"};
  Renamed renamed(kNames, options);
  std::vector<JsonValue> values;
  std::vector<std::string> found;
  RETURN_IF_ERROR(ParseJsonLine(json, renamed.names, &values, &found));
  RETURN_IF_ERROR(renamed.Apply(found, &values));
  const auto given = [&](int name) {
    const bool pair = name == kPair || name == kTextB;
    return values[name].kind > (pair ? JsonValue::kNull : JsonValue::kMissing);
  };
  if (given(kId)) {
    const JsonValue& id = values[kId];
    if (id.kind > JsonValue::kString) return Expected("id", "a string or number");
    record->id = id.kind == JsonValue::kString ? JsonString(id.text) : id.text;
  }
  for (const int name : {kText, kPair, kWords}) {
    const int other = name + 1;
    if (given(name) && given(other))
      return Error(Exit::kData, "\"", kNames[other], "\" is given beside \"", kNames[name], "\"");
    if (!given(other)) continue;
    std::swap(values[name], values[other]);
    renamed.names[name] = kNames[other];
  }
  for (const auto& [name, text] :
      {std::pair(kText, &record->text), std::pair(kPair, &record->text_pair)}) {
    if (!given(name)) continue;
    if (values[name].kind != JsonValue::kString) return Expected(renamed.names[name], "a string");
    *text = std::move(values[name].text);
  }
  if (given(kWords) && !given(kText)) {
    if (!values[kWords].IsListOf(1u << JsonValue::kString))
      return Expected(renamed.names[kWords], "a list of strings");
    record->words = std::move(values[kWords].items);
  }
  if (given(kIds) && (options.format == "ids" || (!given(kText) && !given(kWords)))) {
    if (!values[kIds].IsListOf(1u << JsonValue::kNumber))
      return Expected("ids", "a list of token ids");
    RETURN_IF_ERROR(Annotate(ParseIds(values[kIds].items, "", &record->ids), "\"ids\""));
    if (given(kTypes)) RETURN_IF_ERROR(ParseTypes(values[kTypes].items, record));
  }
  if (values[kAdapter].kind > JsonValue::kNull) {
    if (values[kAdapter].kind != JsonValue::kString) return Expected("adapter", "a string");
    record->adapter = values[kAdapter].text;
  }
  if (given(kPair) && !given(kText))
    return Error(Exit::kData, "\"text_pair\" is given without \"text\"");
  if (!given(kText) && !given(kWords) && !given(kIds))
    return Error(Exit::kData, "no member \"text\", \"words\" or \"ids\"");
  record->kind = given(kPair)    ? Record::Kind::kPair
                 : given(kText)  ? Record::Kind::kText
                 : given(kWords) ? Record::Kind::kWords
                                 : Record::Kind::kIds;
  return absl::OkStatus();
}

}  // namespace cloze
