#include "tools/input.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// A batch ends when its records have this many bytes.
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
    RETURN_IF_ERROR(ParseInputJson(line, record, options));
    if (options.keep) record->cells = {std::move(line)};
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

// Finds the members that hold texts and the id under other names.
class Renamed {
 public:
  // The names that `options` gives, after `usual`.
  Renamed(const std::vector<std::string>& usual, const InputOptions& options) : names(usual) {
    const DataSpec& data = options.data;
    Add(kText, options.text_field, data.has_text_field() ? data.text_field() : "");
    Add(kPair, options.text_pair_field, data.text_pair_field());
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

int64_t BytesOf(const Record& record) {
  int64_t bytes = record.text.size() + record.text_pair.size() + 4 * record.ids.size();
  for (const std::vector<std::string>* list : {&record.words, &record.cells}) {
    for (const std::string& item : *list) bytes += item.size();
  }
  return bytes;
}

// True if a cell of the line, taken as the header of a table, is `name`.
bool IsHeaderWith(const std::string& line, const std::string& name) {
  for (const char separator : {',', '\t', ';'}) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, separator);
    for (absl::string_view cell : cells) {
      cell = absl::StripAsciiWhitespace(cell);
      if (absl::ConsumePrefix(&cell, "\"")) absl::ConsumeSuffix(&cell, "\"");
      if (cells.size() > 1 && cell == name) return true;
    }
  }
  return false;
}

bool IsConllu(const std::string& line) {
  return absl::StartsWith(line, "# sent_id") || absl::StartsWith(line, "# newdoc") ||
         absl::StartsWith(line, "# text =") ||
         (absl::StartsWith(line, "1\t") && absl::c_count(line, '\t') == 9);
}

// True for a word and its tag, such as O or B-PER.
bool IsConllWord(const std::string& line) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos || line.find_first_of(" \t", tab + 1) != std::string::npos)
    return false;
  const std::string tag = line.substr(tab + 1);
  return tag == "O" || (tag.size() > 2 && tag[1] == '-' && absl::StrContains("BIES", tag[0]));
}

}  // namespace

std::string FormatByExtension(const std::string& path) {
  const auto format = FormatOfName(path);
  return format ? absl::AsciiStrToLower(DataSpec::Format_Name(*format)) : "";
}

absl::StatusOr<std::string> InputFormat(const InputOptions& options) {
  const std::string format =
      options.format.empty() ? FormatByExtension(options.path) : options.format;
  if (!absl::StartsWith(format, "conll")) return format.empty() ? "text" : format;
  return Error(Exit::kUsage, QuotePath(options.path),
      ": a CoNLL file: expected texts or a table (`cloze tag` reads CoNLL files)");
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
    if (given(other)) std::swap(values[name], values[other]);
  }
  for (const auto& [name, text] :
      {std::pair(kText, &record->text), std::pair(kPair, &record->text_pair)}) {
    if (!given(name)) continue;
    if (values[name].kind != JsonValue::kString) return Expected(renamed.names[name], "a string");
    *text = std::move(values[name].text);
  }
  if (given(kWords) && !given(kText)) {
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

absl::StatusOr<InputReader> InputReader::Open(const InputOptions& options) {
  InputReader reader(options);
  ASSIGN_OR_RETURN(reader.options_.format, InputFormat(options));
  const std::string& format = reader.options_.format;
  reader.guessed_ = options.format.empty() && format == "text";
  const bool table = format == "csv" || format == "tsv", fasttext = format == "fasttext";
  if (!table && !fasttext) {
    // The spec tells of files; a pipe is UTF-8.
    const Charset charset = options.path == "-" ? Charset::kUtf8 : CharsetOf(options.data);
    ASSIGN_OR_RETURN(reader.lines_, LineReader::Open(options.path, kMaxLineBytes, charset));
    return reader;
  }
  DataSpec data = options.data;
  data.clear_files();
  data.clear_max_examples();
  data.add_files(options.path);
  DataSpec::Format kind = DataSpec::BY_EXTENSION;
  DataSpec::Format_Parse(absl::AsciiStrToUpper(format), &kind);
  data.set_format(kind);
  if (!options.text_field.empty()) data.set_text_field(options.text_field);
  if (!options.text_pair_field.empty()) data.set_text_pair_field(options.text_pair_field);
  if (fasttext) data.clear_text_pair_field();
  ASSIGN_OR_RETURN(TextReader rows, TextReader::Open(data, Labels::kIgnored, true));
  reader.options_.pairs = !data.text_pair_field().empty();
  reader.table_.emplace(std::move(rows));
  return reader;
}

absl::StatusOr<bool> InputReader::NextRow(Record* record) {
  TextExample row;
  absl::StatusOr<bool> more = table_->Next(&row);
  if (columns_.empty()) columns_ = table_->columns();
  if (!more.ok() && options_.skip_bad && !columns_.empty() &&
      ExitOf(more.status()) == Exit::kData) {
    record->wrong = more.status();
    record->line = row.line;
    return true;
  }
  if (!more.ok() || !*more) return more;
  record->kind = options_.pairs ? Record::Kind::kPair : Record::Kind::kText;
  record->text = std::move(row.text);
  record->text_pair = std::move(row.text_pair);
  record->line = row.line;
  const std::string& name = options_.id_field.empty() ? "id" : options_.id_field;
  const size_t id = absl::c_find(columns_, name) - columns_.begin();
  if (id < columns_.size()) record->id = JsonString(row.cells[id]);
  if (id == columns_.size() && !options_.id_field.empty()) {
    return Error(Exit::kData, QuotePath(options_.path), ":1: --id-field: no column \"", Quote(name),
        "\"; there are \"", Quote(absl::StrJoin(columns_, "\", \"")), "\"");
  }
  if (options_.keep && !columns_.empty()) record->cells = std::move(row.cells);
  return true;
}

absl::Status InputReader::CheckPlainText(const std::string& line) const {
  std::string format;
  Record ignored;
  if (IsHeaderWith(line, options_.data.text_field())) {
    format = absl::StrContains(line, '\t') ? "tsv" : "csv";
  } else if (line[0] == '{' && ParseInputJson(line, &ignored, options_).ok()) {
    format = "jsonl";
  } else if (IsConllu(line)) {
    format = "conllu";
  } else if (IsConllWord(line)) {
    format = "conll";
  }
  if (format.empty()) return absl::OkStatus();
  return Error(Exit::kData, QuotePath(lines_->path()), ":", lines_->line_number(), ": looks like ",
      absl::AsciiStrToUpper(format), ": expected lines of text (give --input-format ", format,
      ", or --input-format text if these are texts)");
}

absl::StatusOr<bool> InputReader::NextLine(bool wait, std::string* line, Record* record) {
  do {
    if (!wait) {
      ASSIGN_OR_RETURN(const bool ready, lines_->Ready());
      if (!ready) return false;
    }
    ASSIGN_OR_RETURN(const bool more, lines_->Next(line));
    if (!more) return false;
    record->line = lines_->line_number();
    if (!lines_->continued()) continue;
    record->wrong = Error(Exit::kData, QuotePath(lines_->path()), ":", record->line,
        ": a line of more than ", kMaxLineBytes, " bytes");
    if (!options_.skip_bad) return record->wrong;
    while (lines_->continued()) RETURN_IF_ERROR(lines_->Next(line).status());
    return true;
  } while (line->find_first_not_of(" \t\r\v\f") == std::string::npos);
  return true;
}

absl::StatusOr<bool> InputReader::NextObjectOrLine(bool wait, std::string* line, Record* record) {
  if (options_.format != "jsonl") return NextLine(wait, line, record);
  if (!wait) {
    ASSIGN_OR_RETURN(const bool ready, lines_->Ready());
    if (!ready) return false;
  }
  const auto next_line = [&](std::string* next) {
    return NextLine(wait || objects_.in_array(), next, record);
  };
  ASSIGN_OR_RETURN(const bool more, objects_.Next(*lines_, next_line, line));
  record->line = objects_.line();
  return more;
}

void InputReader::WarnUnlessUtf8(const Record& record) {
  if (warned_) return;
  const std::string& path = lines_ ? lines_->path() : options_.path;
  for (const std::string* text : {&record.text, &record.text_pair}) {
    const std::string note = NotUtf8(path, record.line, *text);
    if (note.empty()) continue;
    std::fprintf(stderr, "cloze: warning: %s; other bytes are read as U+FFFD\n", note.c_str());
    warned_ = true;
    return;
  }
}

absl::StatusOr<bool> InputReader::NextRecord(bool wait, Record* record) {
  if (table_) {
    if (!wait) {
      ASSIGN_OR_RETURN(const bool ready, table_->Ready());
      if (!ready) return false;
    }
    return NextRow(record);
  }
  std::string line;
  ASSIGN_OR_RETURN(const bool more, NextObjectOrLine(wait, &line, record));
  if (!more) return false;
  if (!record->wrong.ok()) return true;
  if (std::exchange(guessed_, false)) RETURN_IF_ERROR(CheckPlainText(line));
  absl::Status status = Annotate(
      Parse(std::move(line), options_, record), QuotePath(lines_->path()), ":", record->line);
  if (!status.ok() && !options_.skip_bad) return status;
  record->wrong = std::move(status);
  return true;
}

absl::Status InputReader::Next(std::vector<Record>* records) {
  records->clear();
  if (!late_.ok()) return late_;
  const bool asks = options_.path == "-" && ::isatty(0) == 1 && ::isatty(2) == 1;
  if (asks) std::fputs("> ", stderr);
  int64_t bytes = 0;
  while (static_cast<int64_t>(records->size()) < options_.records && bytes < kBatchBytes) {
    Record record;
    const absl::StatusOr<bool> more = NextRecord(records->empty(), &record);
    if (!more.ok()) late_ = more.status();
    if (!more.ok() || !*more) break;
    WarnUnlessUtf8(record);
    bytes += BytesOf(record);
    records->push_back(std::move(record));
  }
  if (asks && records->empty()) std::fputs("\n", stderr);
  return records->empty() ? late_ : absl::OkStatus();
}

}  // namespace cloze
