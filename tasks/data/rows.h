// What the readers of single files have in common; private to tasks/data.
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

// A column that is wanted: the spec's field that asks for it, and its name or number. `list`: JSON
// may have a list there.
struct Field {
  std::string spec_field, name;
  bool list = false;
};

// An error of kData at "file:line: ".
absl::Status DataError(absl::string_view path, int64_t line, absl::string_view message);

// The first 20 of `names`, quoted and with commas.
std::string ListNames(absl::Span<const std::string> names);

// Is there nothing but blanks, tabs and carriage returns?
bool IsBlank(absl::string_view text);

// Index from 0 of a column number counted from 1; -1 when `name` is not such a number.
int ColumnNumber(absl::string_view name);

// The next line; kData when it is longer than kRowBytes.
absl::StatusOr<bool> NextLine(LineReader* reader, std::string* line);

// Rows of one file.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // The values of the wanted fields, in their order.
  virtual absl::StatusOr<bool> Next(std::vector<std::string>* values) = 0;
  // Items of the field that may be a list, of the row that Next returned last; nullptr where rows
  // have no lists.
  virtual const std::vector<std::string>* list() const { return nullptr; }
  // Line where the row that Next returned last begins.
  virtual int64_t line() const = 0;
  virtual int64_t position() const = 0;
};

absl::StatusOr<std::unique_ptr<RowReader>> OpenTable(
    const std::string& path, bool quoting, bool header, std::vector<Field> fields);
absl::StatusOr<std::unique_ptr<RowReader>> OpenJsonl(
    const std::string& path, std::vector<Field> fields);
// A TEXT file's documents as rows of one value.
absl::StatusOr<std::unique_ptr<RowReader>> OpenTextRows(
    const std::string& path, DataSpec::Documents documents);

// One line of a JSONL file with lists of strings: tokens and, unless it is empty, tags.
absl::Status ParseTaggedJson(const std::string& path, int64_t line, const std::string& json,
    const std::vector<Field>& fields, TaggedSentence* sentence);

// Documents of one TEXT file in pieces.
class PieceReader {
 public:
  static absl::StatusOr<std::unique_ptr<PieceReader>> Open(
      const std::string& path, DataSpec::Documents documents);
  absl::StatusOr<bool> Next(DocumentPiece* piece);
  // Line where the current document begins.
  int64_t line() const { return line_; }
  int64_t position() const { return reader_.position(); }

 private:
  PieceReader(LineReader reader, DataSpec::Documents documents)
      : reader_(std::move(reader)), documents_(documents) {}
  absl::Status ReadMore();

  LineReader reader_;
  DataSpec::Documents documents_;
  std::string pending_, chunk_;
  bool mid_line_ = false;  // is the rest of a line to come?
  bool line_has_text_ = false;
  bool started_ = false;   // was a piece of this document returned?
  bool complete_ = false;  // is pending_ the document's rest?
  bool end_ = false;
  int64_t line_ = 0;
};

// Length of the first piece of `text`, at most kPieceBytes: up to and with the last white space,
// else at a UTF-8 border.
int64_t PieceLength(absl::string_view text);

// Sentences of one CoNLL or CoNLL-U file.
class ConllReader {
 public:
  static absl::StatusOr<std::unique_ptr<ConllReader>> Open(
      const std::string& path, const DataSpec& spec, bool conllu, Labels labels);
  // As TaggedReader's.
  absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence* raw);
  absl::StatusOr<bool> Ready();
  int tags_column() const { return tags_column_; }
  int64_t position() const { return reader_.position(); }

 private:
  // The sentence that is being read.
  struct Pending {
    TaggedSentence sentence;
    ConllSentence raw;
    int64_t bytes = 0, lines = 0, first_line = 0;
    bool whole = false, end = false;  // was its last line read? Was it the file's?
  };

  ConllReader(LineReader reader, const DataSpec& spec, bool conllu, Labels labels);
  absl::Status ResolveColumns(int columns);
  absl::StatusOr<int> Resolve(
      absl::string_view spec_field, const std::string& name, int fallback, int columns) const;
  // Reads the next line into the sentence, with `raw` as it is, too.
  absl::Status ReadRow(bool raw);
  // Takes apart a line that is not blank.
  absl::Status Take();
  absl::StatusOr<bool> SkipsRow(absl::string_view id) const;

  LineReader reader_;
  std::string words_field_, tags_field_, line_;
  bool conllu_, started_ = false;
  Labels labels_;
  int columns_ = 0, words_column_ = -1, tags_column_ = -1;
  Pending pending_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_ROWS_H_
