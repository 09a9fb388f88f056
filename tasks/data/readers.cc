// Readers of several files, on top of those of single files.
#include "tasks/data/readers.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tasks/data/rows.h"

namespace cloze {

// The formats, each from its own file.
Format TextFormat();
Format TsvFormat();
Format CsvFormat();
Format JsonlFormat();
Format ConlluFormat();
Format ConllFormat();

namespace {

const std::vector<Format>& Formats() {
  static const auto* formats = new std::vector<Format>{
      TextFormat(), TsvFormat(), CsvFormat(), JsonlFormat(), ConlluFormat(), ConllFormat()};
  return *formats;
}

// Returns "A, B or C".
std::string ListOr(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    absl::StrAppend(&out, i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return out;
}

// Returns the entry of the current file's format; kSpec, with the formats that fit, unless it fits.
template <typename F>
absl::StatusOr<const Format*> CurrentFormat(const FileCursor& files, F fits) {
  const Format& current = FormatEntry(files.format());
  if (fits(current)) return &current;
  std::vector<std::string> names;
  for (const Format& format : Formats()) {
    if (fits(format)) names.push_back(DataSpec::Format_Name(format.format));
  }
  return Error(Exit::kSpec, QuotePath(files.path()), ": format: is ",
      DataSpec::Format_Name(files.format()), ": expected ", ListOr(names));
}

// The rows' text_field as documents.
class RowPieces : public PieceReader {
 public:
  explicit RowPieces(std::unique_ptr<RowReader> rows) : rows_(std::move(rows)) {}

  absl::StatusOr<bool> Next(DocumentPiece* piece) override {
    if (at_ < 0) {
      ASSIGN_OR_RETURN(const bool more, rows_->Next(&row_));
      if (!more) return false;
      at_ = 0;
    }
    const absl::string_view rest = absl::string_view(row_[0]).substr(at_);
    const int64_t length = PieceLength(rest);
    piece->text.assign(rest.data(), length);
    piece->first = at_ == 0;
    piece->last = length == rest.size();
    at_ = piece->last ? -1 : at_ + length;
    return true;
  }
  int64_t position() const override { return rows_->position(); }

 private:
  std::unique_ptr<RowReader> rows_;
  std::vector<std::string> row_;
  int64_t at_ = -1;  // where the next piece of the row begins; -1: in the next row
};

absl::StatusOr<std::unique_ptr<PieceReader>> OpenPieces(const FileCursor& files) {
  ASSIGN_OR_RETURN(const Format* format, CurrentFormat(files, [](const Format& f) {
    return f.pieces != nullptr || f.rows != nullptr;
  }));
  if (format->pieces != nullptr) return format->pieces(files.path(), files.spec());
  ASSIGN_OR_RETURN(auto rows,
      format->rows(files.path(), files.spec(), {{"text_field", files.spec().text_field()}}));
  return std::make_unique<RowPieces>(std::move(rows));
}

absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const FileCursor& files, Labels labels) {
  const DataSpec& spec = files.spec();
  const bool required = labels != Labels::kIgnored;
  ASSIGN_OR_RETURN(const Format* format, CurrentFormat(files, [required](const Format& f) {
    return f.rows != nullptr && (f.labels || !required);
  }));
  std::vector<Field> fields = {{"text_field", spec.text_field()}};
  if (!spec.text_pair_field().empty())
    fields.push_back({"text_pair_field", spec.text_pair_field()});
  if (required) fields.push_back({"label_field", spec.label_field(), labels == Labels::kSeveral});
  return format->rows(files.path(), spec, std::move(fields));
}

absl::StatusOr<std::unique_ptr<SentenceReader>> OpenSentences(
    const FileCursor& files, Labels labels) {
  ASSIGN_OR_RETURN(const Format* format,
      CurrentFormat(files, [](const Format& f) { return f.sentences != nullptr; }));
  return format->sentences(files.path(), files.spec(), labels);
}

}  // namespace

const Format& FormatEntry(DataSpec::Format format) {
  const auto& formats = Formats();
  const auto found = std::find_if(
      formats.begin(), formats.end(), [&](const Format& f) { return f.format == format; });
  CLOZE_CHECK(found != formats.end());
  return *found;
}

size_t WholeLines(const std::string& text) { return text.rfind('\n') + 1; }

absl::Status DataError(absl::string_view path, int64_t line, absl::string_view message) {
  return Error(Exit::kData, path == "-" ? "standard input" : QuotePath(path),
      line > 0 ? absl::StrCat(":", line) : "", ": ", message);
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
  std::vector<std::string> extensions;
  for (const Format& format : Formats()) {
    if (absl::EndsWithIgnoreCase(path, format.extension)) return format.format;
    extensions.push_back(format.extension);
  }
  std::string hint = "set format";
  for (const char* packed : {".xz", ".gz", ".bz2", ".zst", ".zip"}) {
    if (absl::EndsWithIgnoreCase(path, packed)) hint = "unpack it first";
  }
  const std::string name = path == "-" ? "standard input" : QuotePath(path);
  return Error(
      Exit::kSpec, name, ": format: the name does not end in ", ListOr(extensions), "; ", hint);
}

absl::StatusOr<FileCursor> FileCursor::Create(const DataSpec& spec) {
  FileCursor files;
  files.spec_ = spec;
  if (spec.files().empty()) return Error(Exit::kSpec, "files: none: expected at least one file");
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

absl::StatusOr<bool> DocumentReader::Next(DocumentPiece* piece) {
  return files_.Read(
      [&] { return OpenPieces(files_); }, [&](PieceReader& reader) { return reader.Next(piece); });
}

int64_t DocumentReader::position() const { return files_.position(); }

TextReader::TextReader(FileCursor files, Labels labels)
    : files_(std::move(files)), labels_(labels) {}
TextReader::TextReader(TextReader&&) noexcept = default;
TextReader::~TextReader() = default;

absl::StatusOr<TextReader> TextReader::Open(const DataSpec& spec, Labels labels) {
  ASSIGN_OR_RETURN(FileCursor files, FileCursor::Create(spec));
  return TextReader(std::move(files), labels);
}

absl::StatusOr<bool> TextReader::Next(TextExample* example) {
  const int64_t limit = files_.spec().max_examples();
  if (limit > 0 && count_ >= limit) return false;
  ASSIGN_OR_RETURN(const bool more, files_.Read([&] { return OpenRows(files_, labels_); },
                                        [&](RowReader& reader) { return reader.Next(&row_); }));
  if (!more) return false;
  const RowReader& rows = *files_.reader();
  line_ = example->line = rows.line();
  example->text = std::move(row_[0]);
  const bool pair = row_.size() > 1 && !files_.spec().text_pair_field().empty();
  example->text_pair = pair ? std::move(row_[1]) : "";
  example->label = labels_ != Labels::kIgnored ? std::move(row_.back()) : "";
  example->is_list = labels_ == Labels::kSeveral && rows.list() != nullptr;
  if (example->is_list) example->list = *rows.list();
  if (labels_ == Labels::kRequired && example->label.empty())
    return Error(Exit::kData, Where(), ": label_field: an empty label");
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
int64_t TextReader::position() const { return files_.position(); }

TaggedReader::TaggedReader(FileCursor files, Labels labels)
    : files_(std::move(files)), labels_(labels) {}
TaggedReader::TaggedReader(TaggedReader&&) noexcept = default;
TaggedReader::~TaggedReader() = default;

absl::StatusOr<TaggedReader> TaggedReader::Open(const DataSpec& spec, Labels labels) {
  ASSIGN_OR_RETURN(FileCursor files, FileCursor::Create(spec));
  return TaggedReader(std::move(files), labels);
}

absl::StatusOr<bool> TaggedReader::Next(TaggedSentence* sentence, ConllSentence* raw) {
  const int64_t limit = files_.spec().max_examples();
  if (limit > 0 && count_ >= limit) return false;
  *sentence = {};
  ASSIGN_OR_RETURN(
      const bool more, files_.Read([&] { return OpenSentences(files_, labels_); },
                           [&](SentenceReader& reader) { return reader.Next(sentence, raw); }));
  if (more && !sentence->words.empty()) ++count_;
  return more;
}

absl::StatusOr<bool> TaggedReader::Ready() {
  return files_.reader() != nullptr ? files_.reader()->Ready() : true;
}

std::string TaggedReader::Where(int64_t line) const { return files_.Where(line); }
int TaggedReader::tags_column() const {
  return files_.reader() != nullptr ? files_.reader()->tags_column() : -1;
}
int64_t TaggedReader::position() const { return files_.position(); }

}  // namespace cloze
