// TSV (no quoting) and CSV (RFC 4180) files.
#include "absl/strings/str_split.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int64_t kMaxColumns = 100000;

class TableReader : public RowReader {
 public:
  TableReader(LineReader reader, bool quoting, std::vector<Field> fields)
      : reader_(std::move(reader)), quoting_(quoting), fields_(std::move(fields)) {}

  // Finds the wanted columns by the header line, or by number.
  absl::Status Start(bool header) {
    if (!header) return absl::OkStatus();  // numbers are checked with the first row
    ASSIGN_OR_RETURN(const bool more, NextRow());
    if (!more) return absl::OkStatus();
    return FindColumns(&row_);
  }

  absl::StatusOr<bool> Next(std::vector<std::string>* values) override {
    ASSIGN_OR_RETURN(const bool more, NextRow());
    if (!more) return false;
    if (columns_ == 0) RETURN_IF_ERROR(FindColumns(nullptr));
    if (row_.size() != columns_) {
      const char* hint = quoting_ ? "" : " (tab-separated, no quoting)";
      return DataError(reader_.path(), line_,
          absl::StrCat(row_.size(), " columns, ", columns_, " expected", hint));
    }
    values->resize(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) (*values)[i] = row_[indexes_[i]];
    return true;
  }
  int64_t line() const override { return line_; }
  int64_t position() const override { return reader_.position(); }

 private:
  // Reads the next row that is not a blank line into row_.
  absl::StatusOr<bool> NextRow() {
    do {
      ASSIGN_OR_RETURN(const bool more, NextLine(&reader_, &text_));
      if (!more) return false;
    } while (text_.empty());
    line_ = reader_.line_number();
    row_.clear();
    if (quoting_) {
      RETURN_IF_ERROR(ParseCsv());
    } else {
      for (absl::string_view column : absl::StrSplit(text_, absl::MaxSplits('\t', kMaxColumns)))
        row_.emplace_back(column);
    }
    if (row_.size() <= kMaxColumns) return true;
    return DataError(reader_.path(), line_, absl::StrCat("more than ", kMaxColumns, " columns"));
  }

  absl::Status ParseCsv() {
    int64_t bytes = text_.size();
    size_t at = 0;
    while (row_.size() <= kMaxColumns) {
      std::string& column = row_.emplace_back();
      if (at < text_.size() && text_[at] == '"') {
        RETURN_IF_ERROR(ParseQuoted(&at, &bytes, &column));
        if (at < text_.size() && text_[at] != ',') {
          return DataError(reader_.path(), reader_.line_number(),
              absl::StrCat("column ", row_.size(),
                  ": expected a comma or the end of the line after a closing quote "
                  "(a quote inside quotes is written twice)"));
        }
      } else {
        const size_t comma = std::min(text_.find(',', at), text_.size());
        column.assign(text_, at, comma - at);
        at = comma;
      }
      if (at >= text_.size()) break;
      ++at;  // the comma
    }
    return absl::OkStatus();
  }

  // Reads from the opening quote at *at to after the closing one, over any number of lines.
  absl::Status ParseQuoted(size_t* at, int64_t* bytes, std::string* column) {
    const int64_t opened = reader_.line_number();
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
      *column += '\n';
      ASSIGN_OR_RETURN(const bool more, NextLine(&reader_, &text_));
      *bytes += text_.size() + 1;
      *at = 0;
      if (more && *bytes <= kRowBytes) continue;
      const std::string end =
          more ? absl::StrCat("within ", kRowBytes, " bytes") : "before the end of the file";
      return DataError(reader_.path(), opened,
          absl::StrCat("column ", row_.size(), ": the quote opened here is not closed ", end));
    }
  }

  absl::Status FindColumns(const std::vector<std::string>* header) {
    columns_ = row_.size();
    for (const Field& field : fields_) {
      int index = -1;
      for (int i = 0; header != nullptr && i < columns_; ++i) {
        if ((*header)[i] != field.name) continue;
        if (index >= 0) {
          return FieldError(field, absl::StrCat("column \"", Quote(field.name),
                                       "\" occurs twice, in columns ", index + 1, " and ", i + 1));
        }
        index = i;
      }
      if (index < 0) {
        index = ColumnNumber(field.name);
        if (index < 0 && header != nullptr) {
          return FieldError(field, absl::StrCat("no column \"", Quote(field.name), "\"; there are ",
                                       ListNames(*header)));
        }
        if (index < 0) {
          return FieldError(field,
              absl::StrCat("\"", Quote(field.name),
                  "\" is a name, but header is false; a number from 1 to ", columns_, " expected"));
        }
        if (index >= columns_)
          return FieldError(field, absl::StrCat("no column ", index + 1, "; there are ", columns_));
      }
      indexes_.push_back(index);
    }
    return absl::OkStatus();
  }

  absl::Status FieldError(const Field& field, absl::string_view message) const {
    return DataError(reader_.path(), line_, absl::StrCat(field.spec_field, ": ", message));
  }

  LineReader reader_;
  bool quoting_;
  std::vector<Field> fields_;
  std::vector<int> indexes_;
  std::vector<std::string> row_;
  std::string text_;
  int64_t line_ = 0;
  int columns_ = 0;
};

template <bool quoting>
absl::StatusOr<std::unique_ptr<RowReader>> Open(
    const std::string& path, const DataSpec& spec, std::vector<Field> fields) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kRowBytes));
  auto table = std::make_unique<TableReader>(std::move(reader), quoting, std::move(fields));
  RETURN_IF_ERROR(table->Start(spec.header()));
  return table;
}

// Whole rows end with a line end outside of quotes.
size_t WholeCsvRows(const std::string& text) {
  size_t end = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) end = i + 1;
  }
  return end;
}

}  // namespace

Format TsvFormat() {
  return {.format = DataSpec::TSV,
      .extension = ".tsv",
      .labels = true,
      .whole = WholeLines,
      .rows = Open<false>};
}
Format CsvFormat() {
  return {.format = DataSpec::CSV,
      .extension = ".csv",
      .labels = true,
      .whole = WholeCsvRows,
      .rows = Open<true>};
}

}  // namespace cloze
