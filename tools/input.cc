#include "tools/input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"

namespace cloze {
namespace {

// A batch ends when its lines have this many bytes.
constexpr int64_t kBatchBytes = 8 << 20;

// The members of a line of JSON. Each of the first three pairs has two spellings.
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

absl::Status Parse(std::string line, const InputOptions& options, Record* record) {
  const bool ids = options.format == "ids";
  if (options.format == "jsonl" || (ids && line[line.find_first_not_of(" \t")] == '{')) {
    RETURN_IF_ERROR(ParseInputJson(line, record));
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

}  // namespace

absl::Status ParseInputJson(const std::string& json, Record* record) {
  static const std::vector<std::string> kNames = {"text", "text_a", "text_pair", "text_b", "words",
      "tokens", "ids", "token_type_ids", "id", "adapter"};
  std::vector<JsonValue> values;
  RETURN_IF_ERROR(ParseJsonLine(json, kNames, &values));
  const auto given = [&](int name) {
    const bool pair = name == kPair || name == kTextB;
    return values[name].kind > (pair ? JsonValue::kNull : JsonValue::kMissing);
  };
  for (const int name : {kText, kPair, kWords}) {
    const int other = name + 1;
    if (given(name) && given(other))
      return Error(Exit::kData, "\"", kNames[other], "\" is given beside \"", kNames[name], "\"");
    if (given(other)) std::swap(values[name], values[other]);
  }
  for (const auto& [name, text] :
      {std::pair(kText, &record->text), std::pair(kPair, &record->text_pair)}) {
    if (!given(name)) continue;
    if (values[name].kind != JsonValue::kString) return Expected(kNames[name], "a string");
    *text = std::move(values[name].text);
  }
  if (given(kWords)) {
    if (!values[kWords].IsListOf(1u << JsonValue::kString))
      return Expected("words", "a list of strings");
    record->words = std::move(values[kWords].items);
  }
  if (given(kIds)) {
    if (!values[kIds].IsListOf(1u << JsonValue::kNumber))
      return Expected("ids", "a list of token ids");
    RETURN_IF_ERROR(Annotate(ParseIds(values[kIds].items, "", &record->ids), "\"ids\""));
    if (given(kTypes)) RETURN_IF_ERROR(ParseTypes(values[kTypes].items, record));
  }
  if (given(kId)) {
    const JsonValue& id = values[kId];
    if (id.kind > JsonValue::kString) return Expected("id", "a string or number");
    record->id = id.kind == JsonValue::kString ? JsonString(id.text) : id.text;
  }
  if (values[kAdapter].kind == JsonValue::kString) record->adapter = values[kAdapter].text;
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

absl::StatusOr<InputReader> InputReader::Open(const InputOptions& options) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(options.path, kMaxLineBytes));
  return InputReader(std::move(reader), options);
}

absl::StatusOr<bool> InputReader::NextRecord(bool wait, Record* record) {
  std::string line;
  do {
    if (!wait) {
      ASSIGN_OR_RETURN(const bool ready, reader_.Ready());
      if (!ready) return false;
    }
    ASSIGN_OR_RETURN(const bool more, reader_.Next(&line));
    if (!more) return false;
    if (reader_.continued()) {
      return Error(Exit::kData, QuotePath(reader_.path()), ":", reader_.line_number(),
          ": a line of more than ", kMaxLineBytes, " bytes");
    }
  } while (line.find_first_not_of(" \t\r\v\f") == std::string::npos);
  record->line = reader_.line_number();
  RETURN_IF_ERROR(Annotate(
      Parse(std::move(line), options_, record), QuotePath(reader_.path()), ":", record->line));
  return true;
}

absl::Status InputReader::Next(std::vector<Record>* records) {
  records->clear();
  if (!late_.ok()) return late_;
  const int64_t begin = reader_.position();
  while (static_cast<int64_t>(records->size()) < options_.records &&
         reader_.position() - begin < kBatchBytes) {
    Record record;
    const absl::StatusOr<bool> more = NextRecord(records->empty(), &record);
    if (!more.ok()) late_ = more.status();
    if (!more.ok() || !*more) break;
    records->push_back(std::move(record));
  }
  return records->empty() ? late_ : absl::OkStatus();
}

}  // namespace cloze
