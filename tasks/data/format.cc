#include "tasks/data/format.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"

namespace cloze {

size_t WholeLines(const std::string& text, const DataSpec& /*spec*/) {
  return text.rfind('\n') + 1;
}

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(" \t\r") == absl::string_view::npos;
}

int ColumnNumber(absl::string_view name) {
  int number = 0;
  const bool digit = !name.empty() && absl::ascii_isdigit(name[0]);
  return digit && absl::SimpleAtoi(name, &number) && number > 0 ? number - 1 : -1;
}

absl::StatusOr<bool> FileReader::NextLine(std::string* line) {
  ASSIGN_OR_RETURN(const bool more, lines_.Next(line));
  if (lines_.continued()) return SkipLine();
  return more;
}

absl::StatusOr<bool> FileReader::NextLine(bool wait, std::string* line, Record* record) {
  if (!wait) {
    ASSIGN_OR_RETURN(const bool ready, lines_.Ready());
    if (!ready) return false;
  }
  ASSIGN_OR_RETURN(const bool more, lines_.Next(line));
  record->line = lines_.line_number();
  if (lines_.continued()) record->wrong = SkipLine();
  return more;
}

absl::Status FileReader::SkipLine() {
  std::string ignored;
  while (lines_.continued()) RETURN_IF_ERROR(lines_.Next(&ignored).status());
  return Fail(lines_.line_number(), "the line is longer than ", kRowBytes, " bytes");
}

absl::StatusOr<bool> FileReader::NextRecord(bool wait, Record* record) {
  if (!wait) {
    ASSIGN_OR_RETURN(const bool ready, Ready());
    if (!ready) return false;
  }
  Row row;
  const absl::StatusOr<bool> more = NextRow(&row);
  const bool table =
      request_.spec.format() == DataSpec::CSV || request_.spec.format() == DataSpec::TSV;
  const bool begun = !table || !names_.empty();  // else the header is wrong
  record->line = row.line;
  if (begun && ExitOf(more.status()) == Exit::kData && !lines_.refused()) {
    record->wrong = more.status();
  } else if (!more.ok() || !*more) {
    return more;
  } else {
    record->kind = row.values.size() > 1 ? Record::Kind::kPair : Record::Kind::kText;
    record->text = std::move(row.values[0]);
    if (row.values.size() > 1) record->text_pair = std::move(row.values[1]);
    const std::string& given = request_.record.id_field;
    const size_t id = absl::c_find(names_, given.empty() ? "id" : given) - names_.begin();
    if (id < names_.size()) record->id = JsonString(row.cells[id]);
    if (id == names_.size() && !given.empty())
      return Fail(0, "id_field: no column \"", Quote(given), "\"; there are \"",
          Quote(absl::StrJoin(names_, "\", \"")), "\"");
  }
  if (request_.record.keep) record->cells = std::move(row.cells);
  return true;
}

absl::StatusOr<bool> FileReader::NextPiece(DocumentPiece* piece) {
  if (piece_at_ == 0) {
    ASSIGN_OR_RETURN(const bool more, NextRow(&row_));
    if (!more) return false;
  }
  const absl::string_view rest = absl::string_view(row_.values[0]).substr(piece_at_);
  piece->text.assign(rest.data(), PieceLength(rest));
  piece->first = piece_at_ == 0;
  piece->last = piece->text.size() == rest.size();
  piece_at_ = piece->last ? 0 : piece_at_ + piece->text.size();
  return true;
}

}  // namespace cloze
