#include "tools/input.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// A batch ends when its records have this many bytes.
constexpr int64_t kBatchBytes = 8 << 20;

int64_t BytesOf(const Record& record) {
  int64_t bytes = record.text.size() + record.text_pair.size() + 4 * record.ids.size();
  for (const std::vector<std::string>* list : {&record.words, &record.cells}) {
    for (const std::string& item : *list) bytes += item.size();
  }
  return bytes;
}

// True if a cell of the line, taken as the header of a table, is `name`.
bool IsHeaderWith(const std::string& line, const std::string& name) {
  for (const char separator : {',', '\t', ';', '|'}) {
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

absl::StatusOr<InputReader> InputReader::Open(const InputOptions& options) {
  InputReader reader(options);
  ASSIGN_OR_RETURN(reader.options_.format, InputFormat(options));
  const std::string& format = reader.options_.format;
  reader.guessed_ = options.format.empty() && format == "text";
  const bool table = format == "csv" || format == "tsv", fasttext = format == "fasttext";
  for (const auto& [option, name] : {std::pair("--text-field", options.text_field),
           std::pair("--text-pair-field", options.text_pair_field),
           std::pair("--id-field", options.id_field)}) {
    if (name.empty() || (format != "text" && !fasttext)) continue;
    return Error(Exit::kUsage, option, ": lines of ", fasttext ? "fastText" : "text",
        " have no fields: expected a table or JSON lines (--input-format csv, tsv or jsonl)");
  }
  if (!table && !fasttext) {
    DataSpec data = options.data;
    data.set_format(format == "text" ? DataSpec::TEXT : DataSpec::JSONL);
    ASSIGN_OR_RETURN(reader.lines_, LineReader::Open(options.path, kMaxLineBytes, CharsetOf(data)));
    return reader;
  }
  // Not a pattern or a folder: later files may have other columns.
  if (options.path != "-" && !PathExists(options.path))
    return Error(Exit::kNoInput, QuotePath(options.path), ": no such file");
  if (IsDirectory(options.path))
    return Error(Exit::kNoInput, QuotePath(options.path), ": is a folder: expected a file");
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
  if (const std::string note = table_->TakeNote(); !note.empty())
    std::fprintf(stderr, "cloze: warning: %s\n", note.c_str());
  const bool begun = !columns_.empty() || options_.format == "fasttext";
  const bool bad_row = ExitOf(more.status()) == Exit::kData && !table_->refused();
  if (bad_row && options_.skip_bad && begun) {
    record->wrong = more.status();
    record->line = row.line;
    if (options_.keep) record->cells = std::move(row.cells);
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
    return Error(Exit::kData, QuoteInput(options_.path), ": --id-field: no column \"", Quote(name),
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
  } else if (absl::StartsWith(line, "__label__")) {
    format = "fasttext";
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
  const bool blanks = options_.blanks && options_.format != "jsonl";
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
  } while (!blanks && line->find_first_not_of(" \t\r\v\f") == std::string::npos);
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
  if (!line.empty() && std::exchange(guessed_, false)) RETURN_IF_ERROR(CheckPlainText(line));
  absl::Status status = Annotate(ParseInputLine(std::move(line), options_, record),
      QuotePath(lines_->path()), ":", record->line);
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
