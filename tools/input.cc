#include "tools/input.h"

#include <unistd.h>

#include <cstdio>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/json.h"

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
  if (!options.texts.empty()) return reader;
  ASSIGN_OR_RETURN(reader.options_.format, InputFormat(options));
  const std::string& format = reader.options_.format;
  const bool fasttext = format == "fasttext";
  reader.guessed_ = options.format.empty() && format == "text";
  for (const auto& [option, name] : {std::pair("--text-field", options.text_field),
           std::pair("--text-pair-field", options.text_pair_field),
           std::pair("--id-field", options.id_field)}) {
    if (name.empty() || (format != "text" && !fasttext)) continue;
    return Error(Exit::kUsage, option, ": lines of ", fasttext ? "fastText" : "text",
        " have no fields: expected a table or JSON lines (--input-format csv, tsv or jsonl)");
  }
  DataSpec::Format kind = DataSpec::TEXT;  // also of ids
  DataSpec::Format_Parse(absl::AsciiStrToUpper(format), &kind);
  // Not a pattern or a folder: later files may have other columns.
  const bool by_line = kind == DataSpec::TEXT || kind == DataSpec::JSONL;
  if (!by_line && options.path != "-" && !PathExists(options.path))
    return Error(Exit::kNoInput, QuotePath(options.path), ": no such file");
  if (!by_line && IsDirectory(options.path))
    return Error(Exit::kNoInput, QuotePath(options.path), ": is a folder: expected a file");
  DataSpec data = options.data;
  data.set_format(kind);
  if (!options.text_field.empty()) data.set_text_field(options.text_field);
  if (!options.text_pair_field.empty()) data.set_text_pair_field(options.text_pair_field);
  if (fasttext) data.clear_text_pair_field();
  RecordOptions records = options;
  records.ids = format == "ids";
  ASSIGN_OR_RETURN(reader.file_, OpenRecords(options.path, data, records));
  return reader;
}

absl::StatusOr<std::optional<FileForm>> InputReader::form() {
  if (options_.format != "csv" && options_.format != "tsv") return std::nullopt;
  if (!encoding_.has_value() && IsStream(options_.path)) encoding_ = Charset::kUtf8;
  if (!encoding_.has_value()) {
    ASSIGN_OR_RETURN(encoding_, CharsetOfFile(options_.path, CharsetOf(options_.data)));
  }
  FileForm form = file_->form();
  form.encoding = *encoding_;
  return form;
}

absl::Status InputReader::CheckPlainText(const Record& record) const {
  const bool pair = record.kind == Record::Kind::kPair && record.wrong.ok();
  const std::string line = pair ? absl::StrCat(record.text, "\t", record.text_pair) : record.text;
  std::string format;
  Record ignored;
  if (IsHeaderWith(line, options_.data.text_field())) {
    format = absl::StrContains(line, '\t') ? "tsv" : "csv";
  } else if (line[0] == '{' && ParseJsonRecord(line, {}, options_.data, &ignored).ok()) {
    format = "jsonl";
  } else if (absl::StartsWith(line, "__label__")) {
    format = "fasttext";
  } else if (IsConllu(line)) {
    format = "conllu";
  } else if (IsConllWord(line)) {
    format = "conll";
  }
  if (format.empty()) return absl::OkStatus();
  return Error(Exit::kData, QuotePath(file_->path()), ":", record.line, ": looks like ",
      absl::AsciiStrToUpper(format), ": expected lines of text (give --input-format ", format,
      ", or --input-format text if these are texts)");
}

void InputReader::WarnUnlessUtf8(const Record& record) {
  if (warned_ || file_ == nullptr) return;
  for (const std::string* text : {&record.text, &record.text_pair}) {
    const std::string note = NotUtf8(file_->path(), record.line, *text);
    if (note.empty()) continue;
    std::fprintf(stderr, "cloze: warning: %s; other bytes are read as U+FFFD\n", note.c_str());
    warned_ = true;
    return;
  }
}

absl::StatusOr<bool> InputReader::NextRecord(bool wait, Record* record) {
  if (file_ == nullptr) {
    if (next_text_ == options_.texts.size()) return false;
    record->text = options_.texts[next_text_++];
    return true;
  }
  const absl::StatusOr<bool> more = file_->NextRecord(wait, record);
  if (const std::string note = file_->TakeNote(); !note.empty())
    std::fprintf(stderr, "cloze: warning: %s\n", note.c_str());
  if (!more.ok() || !*more) return more;
  if (guessed_) RETURN_IF_ERROR(CheckPlainText(*record));
  guessed_ = guessed_ && record->text.empty();
  if (!record->wrong.ok() && !options_.skip_bad) return record->wrong;
  return true;
}

absl::Status InputReader::Next(std::vector<Record>* records) {
  records->clear();
  if (!late_.ok()) return late_;
  const bool asks =
      file_ != nullptr && options_.path == "-" && ::isatty(0) == 1 && ::isatty(2) == 1;
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
