// TSV (no quoting) and CSV (RFC 4180) files.
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tasks/data/file_form.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

char DelimiterOf(const DataSpec& spec, bool quoting) {
  if (spec.delimiter() == "\\t") return '\t';  // values given by a command come without escapes
  if (!spec.delimiter().empty()) return spec.delimiter()[0];
  return quoting ? ',' : '\t';
}

// Returns the settings of `spec` for a table with the wanted columns.
FormHints HintsOf(const DataSpec& spec, std::vector<std::string> columns) {
  const bool quoting = spec.format() != DataSpec::TSV;
  return {.form = {Charset::kUtf8, DelimiterOf(spec, quoting), spec.header()},
      .quoting = quoting,
      .columns = std::move(columns)};
}

FormHints HintsOf(const RowRequest& request) {
  std::vector<std::string> columns;
  for (const Field& field : request.fields) columns.push_back(field.name);
  return HintsOf(request.spec, std::move(columns));
}

// The form of a cell in which it is compared and learned. Repeated cells keep their bytes.
std::string WithUnixLines(absl::string_view cell) {
  return absl::StrReplaceAll(cell, {{"\r\n", "\n"}});
}

constexpr int64_t kMaxColumns = 100000;

class TableReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    absl::StatusOr<bool> more = ReadColumns();
    if (more.ok() && *more && names_.empty()) {
      RETURN_IF_ERROR(FindFields());
      if (form_.header) more = ReadColumns();
    }
    row->line = line_;
    if (!more.ok() || !*more) {
      Watch(/*end=*/true);
      return more;
    }
    if (request_.keep_lines) row->cells = row_;  // also of a wrong row
    if (row_.size() != names_.size()) {
      return Fail(line_, Counted(row_.size(), "column"), ": expected ", names_.size(),
          quoting_ ? "" : " (tab-separated, no quoting)");
    }
    row->values.clear();
    for (const size_t index : indexes_) row->values.push_back(WithUnixLines(row_[index]));
    return true;
  }
  FileForm form() const override { return form_; }

 private:
  // Reads the next row into row_. A blank line is a row only in a table of one column whose rows
  // get answers.
  absl::StatusOr<bool> ReadColumns() {
    const bool blank_is_row =
        request_.keep_lines && request_.labels == Labels::kIgnored && names_.size() == 1;
    do {
      absl::StatusOr<bool> more = NextLine(&text_);
      line_ = lines_.line_number();
      if (!more.ok() || !*more) return more;
    } while (text_.empty() && !blank_is_row);
    if (line_ == 1 && text_.find('\r') != std::string::npos &&
        text_.find('"') == std::string::npos) {
      return Fail(1,
          "carriage returns without line feeds (line ends of old Macs): expected Unix or "
          "Windows line ends (convert with: tr '\\r' '\\n')");
    }
    if (line_ == 1 && text_.size() == 5 && absl::StartsWith(text_, "sep="))
      return Fail(1, "tells Excel the delimiter: expected the first row of the table (delete the ",
          "line)");
    if (names_.empty()) SetForm();
    row_.clear();
    if (quoting_) {
      RETURN_IF_ERROR(ParseCsv());
    } else {
      row_ = absl::StrSplit(text_, absl::MaxSplits(form_.delimiter, kMaxColumns));
    }
    if (row_.size() > kMaxColumns) return Fail(line_, "more than ", kMaxColumns, " columns");
    Watch(/*end=*/false);
    return true;
  }

  // Recognizes the form of the table by its first line.
  void SetForm() {
    form_ = FormOf(text_, HintsOf(request_));
    form_.bom = lines_.has_bom();
    form_.crlf = lines_.line_end() == "\r\n";
    form_.decimal_comma = request_.spec.decimal_comma();
    if (form_.header && !request_.spec.header())
      Note("the first row looks like a header, and is read as one, not as `header: false` says");
  }

  // Looks at the first rows, and makes a note if they are odd.
  void Watch(bool end) {
    if (watched_) return;
    if (!end && first_rows_.size() < kFormRows) {
      std::vector<std::string>& cells = first_rows_.emplace_back();
      for (const std::string& cell : row_) cells.push_back(cell.substr(0, 256));
      return;
    }
    FormHints hints = HintsOf(request_);
    hints.form = form_;
    Note(OddForm(first_rows_, hints));
    watched_ = true;
    first_rows_ = {};
  }

  void Note(absl::string_view what) {
    if (!what.empty())
      absl::StrAppend(&note_, note_.empty() ? "" : "; ", QuoteInput(lines_.path()), ": ", what);
  }

  absl::Status ParseCsv() {
    int64_t bytes = text_.size();
    size_t at = 0;
    while (row_.size() <= kMaxColumns) {
      std::string& column = row_.emplace_back();
      if (at < text_.size() && text_[at] == '"') {
        RETURN_IF_ERROR(ParseQuoted(&at, &bytes, &column));
        if (at < text_.size() && text_[at] != form_.delimiter) {
          return Fail(lines_.line_number(), "column ", row_.size(), ": expected ",
              form_.delimiter == ',' ? "a comma" : "a delimiter",
              " or the end of the line after a closing quote "
              "(a quote inside quotes is written twice)");
        }
      } else {
        const size_t comma = std::min(text_.find(form_.delimiter, at), text_.size());
        column.assign(text_, at, comma - at);
        at = comma;
      }
      if (at >= text_.size()) break;
      ++at;  // the delimiter
    }
    return absl::OkStatus();
  }

  // Reads from the opening quote at *at to after the closing one, over any number of lines, whose
  // ends are kept.
  absl::Status ParseQuoted(size_t* at, int64_t* bytes, std::string* column) {
    const int64_t opened = lines_.line_number();
    ++*at;
    while (true) {
      const size_t quote = text_.find('"', *at);
      if (quote != std::string::npos) {
        column->append(text_, *at, quote - *at);
        *at = quote + 1;
        if (*at >= text_.size() || text_[*at] != '"') return absl::OkStatus();
        *column += '"';
        ++*at;
        continue;
      }
      column->append(text_, *at, std::string::npos);
      absl::StrAppend(column, lines_.line_end());
      ASSIGN_OR_RETURN(const bool more, NextLine(&text_));
      *bytes += text_.size() + 1;
      *at = 0;
      if (more && *bytes <= kRowBytes) continue;
      return Fail(opened, "column ", row_.size(), ": the quote opened here is not closed ",
          more ? absl::StrCat("within ", kRowBytes, " bytes") : "before the end of the file");
    }
  }

  // Finds the wanted columns by row_: by the names in a header, or by number.
  absl::Status FindFields() {
    const int columns = row_.size();
    for (const auto& [spec_field, name, list] : request_.fields) {
      const auto fail = [&, &spec_field = spec_field](const auto&... message) {
        return Fail(line_, spec_field, ": ", message...);
      };
      int index = -1;
      for (int i = 0; form_.header && i < columns; ++i) {
        if (WithUnixLines(row_[i]) != name) continue;
        if (index >= 0) {
          return fail(
              "column \"", Quote(name), "\" occurs twice, in columns ", index + 1, " and ", i + 1);
        }
        index = i;
      }
      if (index < 0) index = ColumnNumber(name);
      if (index < 0 && form_.header)
        return fail("no column \"", Quote(name), "\"; there are ", ListNames(row_), OtherForm());
      if (index < 0) {
        return fail("\"", Quote(name),
            "\" is a name, but header is false: expected a number from 1 to ", columns);
      }
      if (index >= columns)
        return fail("no column ", index + 1, "; there are ", columns, OtherForm());
      indexes_.push_back(index);
    }
    for (int i = 0; i < columns; ++i)
      names_.push_back(form_.header ? row_[i] : absl::StrCat(i + 1));
    return absl::OkStatus();
  }

  // Returns a hint for a first row without the wanted columns.
  std::string OtherForm() const {
    const std::string other = row_.size() == 1 ? DelimiterIn(row_[0]) : "";
    if (!other.empty())
      return absl::StrCat(" (columns separated by ", other == "\\t" ? "tabs" : other,
          "? set delimiter: \"", other, "\")");
    if (!quoting_ && absl::StartsWith(row_[0], "\""))
      return " (names in quotes? read the file as CSV with delimiter: \"\\t\")";
    return "";
  }

  const bool quoting_ = request_.spec.format() == DataSpec::CSV;
  FileForm form_;                // after the first line
  std::vector<size_t> indexes_;  // of the wanted columns
  std::vector<std::string> row_;
  std::string text_;
  int64_t line_ = 0;
  std::vector<std::vector<std::string>> first_rows_;  // that Watch looks at
  bool watched_ = false;
};

// Whole rows end with a line end outside of quoted cells. Only a quote at the start of a cell opens
// one, as in ParseCsv.
size_t WholeCsvRows(const std::string& text, const DataSpec& spec) {
  const char delimiter =
      FormOf(text.substr(0, text.find('\n')), HintsOf(spec, {spec.text_field()})).delimiter;
  size_t end = 0;
  bool quoted = false, starts = true;  // starts: the next character begins a cell
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      ++i;
    } else if (c == '"' && (quoted || starts)) {
      quoted = !quoted;
    } else if (c == '\n' && !quoted) {
      end = i + 1;
    }
    starts = !quoted && (c == delimiter || c == '\n');
  }
  return end;
}

}  // namespace

extern const Format kTsvFormat = {DataSpec::TSV, ".tsv", Format::kTexts | Format::kLabelledTexts,
    WholeLines, OpenAs<TableReader>};
extern const Format kCsvFormat = {DataSpec::CSV, ".csv", Format::kTexts | Format::kLabelledTexts,
    WholeCsvRows, OpenAs<TableReader>};

}  // namespace cloze
