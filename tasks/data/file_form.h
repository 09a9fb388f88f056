// The form of a data file, as far as its beginning tells: encoding, delimiter, header.
#ifndef CLOZE_TASKS_DATA_FILE_FORM_H_
#define CLOZE_TASKS_DATA_FILE_FORM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/charset.h"
#include "proto/task.pb.h"

namespace cloze {

struct FileForm {
  Charset encoding = Charset::kUtf8;
  char delimiter = ',';
  bool header = true;
  bool bom = false, crlf = false;  // a byte order mark of UTF-8; the line ends of Windows
  bool decimal_comma = false;      // as the spec says
};

// Settings of a table before it is read.
struct FormHints {
  FileForm form;                     // decides what the file leaves open
  bool quoting = true;               // CSV, else TSV
  std::vector<std::string> columns;  // the wanted ones: names, or numbers from 1; none: unknown
};

// Returns the form of a table that begins with `beginning`, as it is stored: its first row, or
// more. With more than a row, the last one may be cut off.
//   encoding: a byte order mark, UTF-8, zeros of UTF-16; else that of the hints, or, if that is
//     UTF-8, Windows-1252 where the bytes look like it
//   delimiter: one that gives the wanted names of the first row; if no columns are wanted, the one
//     that splits all rows alike into the most, or nearly all rows
//   header: true if the first row has names that are usual for columns, or wanted ones; without
//     wanted columns, false if it looks like the rows below
FileForm FormOf(absl::string_view beginning, const FormHints& hints);

// Returns a character of `row` that may separate columns, as a spec names it: "\\t" is a tab. ""
// if there is none.
std::string DelimiterIn(absl::string_view row);

using TableRows = absl::Span<const std::vector<std::string>>;

// The most rows that OddForm looks at.
inline constexpr size_t kFormRows = 50;
// Returns what is odd about a table with the first rows `rows` when it is read as `hints` say: a
// header in place of data or the reverse, another delimiter, quotes in TSV. "" if nothing.
std::string OddForm(TableRows rows, const FormHints& hints);
// Returns that of each table of `data`, as "file: what"; "" if nothing. Skips streams and errors.
std::string OddTables(const DataSpec& data);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_FILE_FORM_H_
