// Answers as lines: JSON, or rows of the input with the answer in new columns.
#ifndef CLOZE_TOOLS_ANSWERS_H_
#define CLOZE_TOOLS_ANSWERS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/base/status.h"
#include "tasks/data/file_form.h"
#include "tasks/record.h"
#include "tools/process.h"

namespace cloze {

// Returns an answer, which must have members, on one line, after the id of the record if it has
// one.
std::string JsonWithId(const Record& record, const OrderedJson& answer);

// Returns the content of a string, "" for null, and other values as JSON.
std::string CellText(const OrderedJson& value);
// Returns a cell of CSV (RFC 4180), in quotes if it needs them.
std::string CsvCell(const std::string& cell, char delimiter = ',');

// Returns what goes between the labels of a cell: `wanted`, or another character if a label has it.
std::string SeparatorOf(const std::vector<std::string>& labels, const std::string& wanted);

// Writes answers in one of these formats:
//   "": the answer as a JSON object, after the id of the record if it has one
//   jsonl: the input's columns or members, then the answer's
//   table: the tokens of fill-mask as tables for a terminal
//   csv (RFC 4180), tsv: a header; the input's columns, then the answer's; UTF-8 unless SetForm
//     says how the input is written
// A member of the answer whose name the input has already becomes "predicted_<name>"; in jsonl,
// from the first line on that has it. Cells of the input keep their bytes. What comes from the
// model, such as labels, is printable (MustEscape); WriteStdout cares for terminals.
class AnswerWriter {
 public:
  // `writer` must outlive this.
  // With `errors`, records may be wrong, and rows end with a column "error". `empty`: an answer
  // whose members name the columns if the first row has none. `separator` goes between the labels
  // of a cell.
  AnswerWriter(std::string format, bool errors, LineWriter* writer, OrderedJson empty,
      std::string separator = ",")
      : format_(std::move(format)), errors_(errors), empty_(std::move(empty)),
        separator_(std::move(separator)), writer_(writer) {
    if (format_ == "tsv") form_.delimiter = '\t';
  }

  // Writes tables as `form` says, from the next row on.
  void SetForm(const FileForm& form) { form_ = form; }
  // Warns on stderr of characters that the encoding lacks, which are written as "?".
  void WarnOfLost() const;
  // `columns`: names of record.cells if the input is a table. kData for a value that has no place:
  // a member that the first JSON line does not have (with `errors`, the row's error), a tab or line
  // end in TSV.
  absl::Status Write(
      const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer);
  // Writes the rows with an error that still wait because no row has named the columns of the
  // input; for a table without rows, a header with its `columns`.
  absl::Status Finish(const std::vector<std::string>& columns = {});
  // With `errors`: number of rows whose error is a value that has no place.
  int64_t unplaced() const { return unplaced_; }

 private:
  using Cells = std::vector<std::pair<std::string, std::string>>;  // names and values
  // Columns of the output.
  struct Columns {
    std::vector<std::string> names;
    std::map<std::string, size_t> index;  // of the first column of a name
  };
  absl::Status WriteJson(
      const Record& record, const std::vector<std::string>& columns, const OrderedJson& answer);
  // Writes the header, and the rows that waited for it.
  absl::Status WriteHeader(const Cells& input, const Cells& answer);
  // Keeps a row with an error until the columns of the input are known, at most for some thousand
  // rows.
  absl::Status Wait(Cells input, std::string error);
  absl::Status WriteCells(const Cells& input, const Cells& answer, const std::string& error);
  absl::Status WriteRow(const std::vector<std::string>& cells);

  std::string format_;
  bool errors_;
  OrderedJson empty_;
  std::string separator_;
  FileForm form_;
  int64_t lost_ = 0;
  LineWriter* writer_;
  Columns input_, answer_;        // after the header is written
  std::set<std::string> shared_;  // jsonl: names of the input that answers have, too
  bool header_ = false;           // true after the header is written
  bool begun_ = false;            // true after the first row
  int64_t unplaced_ = 0;
  std::vector<std::pair<Cells, std::string>> waiting_;  // rows with an error before the header
  size_t waiting_bytes_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_ANSWERS_H_
