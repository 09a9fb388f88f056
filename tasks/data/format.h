// The interface of a data format, and the table of formats. Outside of tasks/data, OpenRecords
// gives the reader of a file for inference.
#ifndef CLOZE_TASKS_DATA_FORMAT_H_
#define CLOZE_TASKS_DATA_FORMAT_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "tasks/data/file_form.h"
#include "tasks/data/readers.h"
#include "tasks/data/record.h"

namespace cloze {

// A wanted column: the spec's field that asks for it, and its name or number. With `list`, JSON may
// have a list there.
struct Field {
  std::string spec_field, name;
  bool list = false;
};

// The content to read from a file.
struct RowRequest {
  DataSpec spec;              // with the file's format
  std::vector<Field> fields;  // of texts and documents
  Labels labels = Labels::kIgnored;
  bool keep_lines = false;  // fill Row::cells and TaggedSentence::file_lines
  RecordOptions record = {};
};

// The values of the wanted fields in their order, and the items of the label field if it may be a
// list.
struct Row {
  std::vector<std::string> values;
  std::optional<std::vector<std::string>> list;
  std::vector<std::vector<std::string>> items;  // Labels::kGroups, JSON: the texts of each field
  std::vector<std::string> cells;               // with keep_lines: all columns, or the line
  int64_t line = 0;                             // where the row begins
};

// Reads one file. A format implements the methods for what it holds; they return false at the end.
class FileReader {
 public:
  FileReader(LineReader lines, RowRequest request)
      : lines_(std::move(lines)), request_(std::move(request)) {}
  virtual ~FileReader() = default;

  virtual absl::StatusOr<bool> NextRow(Row*) { CLOZE_CHECK(false); }
  // Reads the next piece of the first field of the rows unless a format overrides it.
  virtual absl::StatusOr<bool> NextPiece(DocumentPiece* piece);
  virtual absl::StatusOr<bool> NextSentence(TaggedSentence*) { CLOZE_CHECK(false); }
  // Reads the next record, by NextRow unless a format overrides it; false at the end or, without
  // `wait`, when none is available yet. A wrong record has `wrong` set.
  virtual absl::StatusOr<bool> NextRecord(bool wait, Record* record);
  virtual absl::StatusOr<bool> Ready() { return lines_.Ready(); }
  const std::string& path() const { return lines_.path(); }
  int64_t stored_position() const { return lines_.stored_position(); }
  const std::vector<std::string>& columns() const { return names_; }
  // Returns how a table is written, after its first row, except for its encoding.
  virtual FileForm form() const { return {}; }
  // Returns what is odd about the file, "file: what", once; "" if nothing, or not known yet.
  std::string TakeNote() { return std::exchange(note_, ""); }

 protected:
  // Reads the next line; kData when it is longer than kRowBytes.
  absl::StatusOr<bool> NextLine(std::string* line);
  // Reads the next line of a record, unless it is not available yet and `wait` is false. Sets the
  // record's line, and `wrong` if the line is too long.
  absl::StatusOr<bool> NextLine(bool wait, std::string* line, Record* record);
  // Returns kData, "file:line: message"; without a line when it is 0.
  template <typename... Parts>
  absl::Status Fail(int64_t line, const Parts&... message) const {
    return Error(Exit::kData, QuoteInput(lines_.path()), line > 0 ? absl::StrCat(":", line) : "",
        ": ", message...);
  }

  LineReader lines_;
  const RowRequest request_;
  std::vector<std::string> names_;  // names of the columns of a table, after its first row
  std::string note_;

 private:
  // Skips the rest of a line that is too long, and returns its error.
  absl::Status SkipLine();

  Row row_;
  size_t piece_at_ = 0;  // where the next piece of row_ begins
};

// One data format. A new format takes its own file, a line in readers.cc and a value of
// DataSpec::Format.
struct Format {
  enum Content : uint32_t { kTexts = 1, kLabelledTexts = 2, kSentences = 4 };

  DataSpec::Format format;
  const char* extension;  // null: none
  uint32_t holds;         // bits
  // Returns the length of the whole records in `text`, the beginning of a file that is read as
  // `spec` says; 0: none.
  size_t (*whole)(const std::string& text, const DataSpec& spec);
  std::unique_ptr<FileReader> (*open)(LineReader lines, RowRequest request);
  int64_t line_bytes = kRowBytes;  // longer lines come in parts
  const char* other_extension = nullptr;
};

// Format::open of a subclass of FileReader.
template <typename Reader>
std::unique_ptr<FileReader> OpenAs(LineReader lines, RowRequest request) {
  return std::make_unique<Reader>(std::move(lines), std::move(request));
}

// Opens a file, or "-", to read records. `spec` has the format, and says how the file is written
// and which columns the texts are in. kSpec for a format without texts.
absl::StatusOr<std::unique_ptr<FileReader>> OpenRecords(
    const std::string& path, const DataSpec& spec, const RecordOptions& options);

// FOLDERS: returns the files of the folders in `folder`, sorted; without any, those of `folder`
// itself. Hidden ones are left out.
absl::StatusOr<std::vector<std::string>> ListClassFiles(const std::string& folder);
// Returns the class of such a file: the name of its folder.
std::string ClassOfFile(const std::string& path);

// Format::whole of formats with one record per line.
size_t WholeLines(const std::string& text, const DataSpec& spec);

// True if `text` has only spaces, tabs and carriage returns.
bool IsBlank(absl::string_view text);

// Returns the index from 0 of a column number counted from 1; -1 when `name` is no such number.
int ColumnNumber(absl::string_view name);

// Returns the length of the first piece of `text`, at most kPieceBytes: up to the last white space,
// else to the last boundary of a UTF-8 sequence.
size_t PieceLength(absl::string_view text);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_FORMAT_H_
