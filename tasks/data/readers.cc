// The readers of several files, over those of single ones.
#include "tasks/data/readers.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

// Opens a TSV, CSV or JSONL file.
absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(
    const FileCursor& files, std::vector<Field> fields) {
  const DataSpec::Format format = files.format();
  if (format == DataSpec::JSONL) return OpenJsonl(files.path(), std::move(fields));
  return OpenTable(files.path(), format == DataSpec::CSV, files.spec().header(), std::move(fields));
}

bool IsConll(DataSpec::Format format) {
  return format == DataSpec::CONLLU || format == DataSpec::CONLL;
}

absl::Status WrongFormat(const FileCursor& files, absl::string_view expected) {
  return Error(
      Exit::kSpec, absl::StrCat(QuotePath(files.path()), ": format: is ",
                       DataSpec::Format_Name(files.format()), "; ", expected, " expected"));
}

}  // namespace

absl::Status DataError(absl::string_view path, int64_t line, absl::string_view message) {
  return Error(Exit::kData, absl::StrCat(path == "-" ? "standard input" : QuotePath(path),
                                line > 0 ? absl::StrCat(":", line) : "", ": ", message));
}

std::string ListNames(absl::Span<const std::string> names) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 20); ++i)
    absl::StrAppend(&out, i > 0 ? ", " : "", "\"", Quote(names[i]), "\"");
  if (names.size() > 20) absl::StrAppend(&out, ", ... (", names.size(), ")");
  return names.empty() ? "none" : out;
}

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(" \t\r") == absl::string_view::npos;
}

int ColumnNumber(absl::string_view name) {
  int number = 0;
  return !name.empty() && absl::ascii_isdigit(name[0]) && absl::SimpleAtoi(name, &number) &&
                 number > 0
             ? number - 1
             : -1;
}

absl::StatusOr<bool> NextLine(LineReader* reader, std::string* line) {
  ASSIGN_OR_RETURN(const bool more, reader->Next(line));
  if (!reader->continued()) return more;
  return DataError(reader->path(), reader->line_number(),
      absl::StrCat("the line is longer than ", kRowBytes, " bytes"));
}

absl::StatusOr<DataSpec::Format> FormatOf(const DataSpec& spec, const std::string& path) {
  if (spec.format() != DataSpec::BY_EXTENSION) return spec.format();
  static constexpr struct {
    const char* extension;
    DataSpec::Format format;
  } kExtensions[] = {{".txt", DataSpec::TEXT}, {".tsv", DataSpec::TSV}, {".csv", DataSpec::CSV},
      {".jsonl", DataSpec::JSONL}, {".conllu", DataSpec::CONLLU}, {".conll", DataSpec::CONLL}};
  for (const auto& [extension, format] : kExtensions) {
    if (absl::EndsWithIgnoreCase(path, extension)) return format;
  }
  std::string hint = "set format";
  for (const char* packed : {".xz", ".gz", ".bz2", ".zst", ".zip"}) {
    if (absl::EndsWithIgnoreCase(path, packed)) hint = "unpack it first";
  }
  const std::string name = path == "-" ? "standard input" : QuotePath(path);
  return Error(Exit::kSpec,
      absl::StrCat(name,
          ": format: the name does not end in .txt, .tsv, .csv, .jsonl, .conllu or .conll; ",
          hint));
}

absl::StatusOr<FileCursor> FileCursor::Create(const DataSpec& spec) {
  FileCursor files;
  files.spec_ = spec;
  if (spec.files().empty()) return Error(Exit::kSpec, "files: none, at least one file expected");
  for (const std::string& path : spec.files()) {
    ASSIGN_OR_RETURN(const DataSpec::Format format, FormatOf(spec, path));
    int64_t size = 0;
    if (path != "-") {
      ASSIGN_OR_RETURN(size, FileSize(path));
    }
    files.formats_.push_back(format);
    files.sizes_.push_back(size);
    files.total_ += size;
  }
  return files;
}

bool FileCursor::Advance() {
  if (index_ >= 0 && index_ < spec_.files_size()) done_ += sizes_[index_];
  if (index_ < spec_.files_size()) ++index_;
  return index_ < spec_.files_size();
}

std::string FileCursor::Where(int64_t line) const {
  if (index_ < 0 || index_ >= spec_.files_size()) return "end of data";
  return absl::StrCat(path() == "-" ? "standard input" : QuotePath(path()), ":", line);
}

DocumentReader::DocumentReader(FileCursor files) : files_(std::move(files)) {}
DocumentReader::DocumentReader(DocumentReader&&) noexcept = default;
DocumentReader::~DocumentReader() = default;

absl::StatusOr<DocumentReader> DocumentReader::Open(const DataSpec& spec) {
  ASSIGN_OR_RETURN(FileCursor files, FileCursor::Create(spec));
  return DocumentReader(std::move(files));
}

absl::Status DocumentReader::OpenFile() {
  if (IsConll(files_.format())) return WrongFormat(files_, "TEXT, TSV, CSV or JSONL");
  if (files_.format() == DataSpec::TEXT) {
    ASSIGN_OR_RETURN(pieces_, PieceReader::Open(files_.path(), files_.spec().documents()));
  } else {
    ASSIGN_OR_RETURN(rows_, OpenRows(files_, {{"text_field", files_.spec().text_field()}}));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DocumentReader::Next(DocumentPiece* piece) {
  while (true) {
    if (row_at_ >= 0) {
      const absl::string_view rest = absl::string_view(row_[0]).substr(row_at_);
      const int64_t length = PieceLength(rest);
      piece->text.assign(rest.data(), length);
      piece->first = row_at_ == 0;
      piece->last = length == rest.size();
      row_at_ = piece->last ? -1 : row_at_ + length;
      return true;
    }
    if (pieces_ != nullptr) {
      ASSIGN_OR_RETURN(const bool more, pieces_->Next(piece));
      if (more) return true;
    } else if (rows_ != nullptr) {
      ASSIGN_OR_RETURN(const bool more, rows_->Next(&row_));
      if (more) row_at_ = 0;
      if (more) continue;
    }
    pieces_ = nullptr;
    rows_ = nullptr;
    if (!files_.Advance()) return false;
    RETURN_IF_ERROR(OpenFile());
  }
}

int64_t DocumentReader::position() const {
  return files_.done_bytes() + (pieces_ != nullptr    ? pieces_->position()
                                   : rows_ != nullptr ? rows_->position()
                                                      : 0);
}

TextReader::TextReader(FileCursor files, Labels labels)
    : files_(std::move(files)), labels_(labels) {}
TextReader::TextReader(TextReader&&) noexcept = default;
TextReader::~TextReader() = default;

absl::StatusOr<TextReader> TextReader::Open(const DataSpec& spec, Labels labels) {
  ASSIGN_OR_RETURN(FileCursor files, FileCursor::Create(spec));
  return TextReader(std::move(files), labels);
}

absl::Status TextReader::OpenFile() {
  const DataSpec& spec = files_.spec();
  const bool required = labels_ != Labels::kIgnored;
  if (IsConll(files_.format()) || (required && files_.format() == DataSpec::TEXT)) {
    return WrongFormat(files_, required ? "TSV, CSV or JSONL" : "TEXT, TSV, CSV or JSONL");
  }
  if (files_.format() == DataSpec::TEXT) {
    ASSIGN_OR_RETURN(rows_, OpenTextRows(files_.path(), spec.documents()));
    return absl::OkStatus();
  }
  std::vector<Field> fields = {{"text_field", spec.text_field()}};
  if (!spec.text_pair_field().empty())
    fields.push_back({"text_pair_field", spec.text_pair_field()});
  if (required) fields.push_back({"label_field", spec.label_field(), labels_ == Labels::kSeveral});
  ASSIGN_OR_RETURN(rows_, OpenRows(files_, std::move(fields)));
  return absl::OkStatus();
}

absl::StatusOr<bool> TextReader::Next(TextExample* example) {
  const int64_t limit = files_.spec().max_examples();
  if (limit > 0 && count_ >= limit) return false;
  while (true) {
    if (rows_ != nullptr) {
      ASSIGN_OR_RETURN(const bool more, rows_->Next(&row_));
      if (more) break;
      rows_ = nullptr;
    }
    if (!files_.Advance()) return false;
    RETURN_IF_ERROR(OpenFile());
  }
  line_ = example->line = rows_->line();
  example->text = std::move(row_[0]);
  const bool pair = files_.format() != DataSpec::TEXT && !files_.spec().text_pair_field().empty();
  example->text_pair = pair ? std::move(row_[1]) : "";
  example->label = labels_ != Labels::kIgnored ? std::move(row_.back()) : "";
  example->is_list = labels_ == Labels::kSeveral && rows_->list() != nullptr;
  if (example->is_list) example->list = *rows_->list();
  if (labels_ == Labels::kRequired && example->label.empty())
    return Error(Exit::kData, absl::StrCat(Where(), ": label_field: an empty label"));
  ++count_;
  return true;
}

std::vector<std::string> LabelsOf(const TextExample& example, const std::string& separator) {
  if (example.is_list) return example.list;
  std::vector<std::string> labels;
  for (const absl::string_view part : absl::StrSplit(example.label, separator)) {
    const absl::string_view label = absl::StripAsciiWhitespace(part);
    if (!label.empty()) labels.emplace_back(label);
  }
  return labels;
}

std::string TextReader::Where() const { return files_.Where(line_); }
int64_t TextReader::position() const {
  return files_.done_bytes() + (rows_ != nullptr ? rows_->position() : 0);
}

TaggedReader::TaggedReader(FileCursor files, Labels labels)
    : files_(std::move(files)), labels_(labels) {}
TaggedReader::TaggedReader(TaggedReader&&) noexcept = default;
TaggedReader::~TaggedReader() = default;

absl::StatusOr<TaggedReader> TaggedReader::Open(const DataSpec& spec, Labels labels) {
  ASSIGN_OR_RETURN(FileCursor files, FileCursor::Create(spec));
  return TaggedReader(std::move(files), labels);
}

absl::Status TaggedReader::OpenFile() {
  if (files_.format() == DataSpec::JSONL) {
    ASSIGN_OR_RETURN(rows_, OpenJsonl(files_.path(), {}));
    return absl::OkStatus();
  }
  if (!IsConll(files_.format())) return WrongFormat(files_, "CONLLU, CONLL or JSONL");
  ASSIGN_OR_RETURN(conll_, ConllReader::Open(files_.path(), files_.spec(),
                               files_.format() == DataSpec::CONLLU, labels_));
  return absl::OkStatus();
}

absl::StatusOr<bool> TaggedReader::Next(TaggedSentence* sentence, ConllSentence* raw) {
  const DataSpec& spec = files_.spec();
  if (spec.max_examples() > 0 && count_ >= spec.max_examples()) return false;
  std::vector<std::string> row;
  while (true) {
    *sentence = {};
    if (conll_ != nullptr) {
      ASSIGN_OR_RETURN(const bool more, conll_->Next(sentence, raw));
      if (more) break;
      conll_ = nullptr;
    } else if (rows_ != nullptr) {
      ASSIGN_OR_RETURN(const bool more, rows_->Next(&row));
      if (more) {
        std::vector<Field> fields = {
            {"words_field", spec.words_field().empty() ? "tokens" : spec.words_field()}};
        if (labels_ == Labels::kRequired)
          fields.push_back({"tags_field", spec.tags_field().empty() ? "tags" : spec.tags_field()});
        RETURN_IF_ERROR(ParseTaggedJson(files_.path(), rows_->line(), row[0], fields, sentence));
        if (!sentence->words.empty()) break;
        continue;
      }
      rows_ = nullptr;
    }
    if (!files_.Advance()) return false;
    RETURN_IF_ERROR(OpenFile());
  }
  if (!sentence->words.empty()) ++count_;
  return true;
}

absl::StatusOr<bool> TaggedReader::Ready() { return conll_ != nullptr ? conll_->Ready() : true; }

std::string TaggedReader::Where(int64_t line) const { return files_.Where(line); }
int TaggedReader::tags_column() const { return conll_ != nullptr ? conll_->tags_column() : -1; }
int64_t TaggedReader::position() const {
  return files_.done_bytes() + (conll_ != nullptr     ? conll_->position()
                                   : rows_ != nullptr ? rows_->position()
                                                      : 0);
}

}  // namespace cloze
