// Readers of single files, and the table of formats; private to tasks/data.
#ifndef CLOZE_TASKS_DATA_ROWS_H_
#define CLOZE_TASKS_DATA_ROWS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"
#include "tasks/data/readers.h"

namespace cloze {

// A wanted column: the spec's field that asks for it, and its name or number. With `list`, JSON may
// have a list there.
struct Field {
  std::string spec_field, name;
  bool list = false;
};

// Returns kData, "file:line: message".
absl::Status DataError(absl::string_view path, int64_t line, absl::string_view message);

// Returns the first 20 of `names`, quoted and separated by commas.
std::string ListNames(absl::Span<const std::string> names);

// True if `text` has only blanks, tabs and carriage returns.
bool IsBlank(absl::string_view text);

// Returns the index from 0 of a column number counted from 1; -1 when `name` is no such number.
int ColumnNumber(absl::string_view name);

// Reads the next line; kData when it is longer than kRowBytes.
absl::StatusOr<bool> NextLine(LineReader* reader, std::string* line);

// Rows of one file.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Reads the values of the wanted fields, in their order.
  virtual absl::StatusOr<bool> Next(std::vector<std::string>* values) = 0;
  // Returns the items of the field that may be a list, in the row read last; nullptr where rows
  // have no lists.
  virtual const std::vector<std::string>* list() const { return nullptr; }
  // Returns the line where the row read last begins.
  virtual int64_t line() const = 0;
  virtual int64_t position() const = 0;
};

// Documents of one file in pieces.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  virtual absl::StatusOr<bool> Next(DocumentPiece* piece) = 0;
  virtual int64_t position() const = 0;
};

// Tagged sentences of one file. The methods are those of TaggedReader.
class SentenceReader {
 public:
  virtual ~SentenceReader() = default;
  virtual absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence* raw) = 0;
  virtual absl::StatusOr<bool> Ready() { return true; }
  virtual int tags_column() const { return -1; }
  virtual int64_t position() const = 0;
};

// One data format. A function that is null is a way in which the format cannot be read.
// A new format takes its own file, a line in readers.cc and a value of DataSpec::Format.
struct Format {
  DataSpec::Format format;
  const char* extension;
  bool labels = false;  // rows can have labels
  // Returns how many bytes of the beginning of a file are whole records; 0: none.
  size_t (*whole)(const std::string& text);
  absl::StatusOr<std::unique_ptr<RowReader>> (*rows)(
      const std::string& path, const DataSpec& spec, std::vector<Field> fields) = nullptr;
  // Null for formats whose documents are the rows' text_field.
  absl::StatusOr<std::unique_ptr<PieceReader>> (*pieces)(
      const std::string& path, const DataSpec& spec) = nullptr;
  absl::StatusOr<std::unique_ptr<SentenceReader>> (*sentences)(
      const std::string& path, const DataSpec& spec, Labels labels) = nullptr;
};

// Returns the entry of a format other than BY_EXTENSION.
const Format& FormatEntry(DataSpec::Format format);

// Returns the bytes of `text` up to its last line end, for formats of one record per line.
size_t WholeLines(const std::string& text);

// Returns the length of the first piece of `text`, at most kPieceBytes: up to the last white space,
// else to the last boundary of a UTF-8 sequence.
int64_t PieceLength(absl::string_view text);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_ROWS_H_
