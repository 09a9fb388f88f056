// TEXT files: documents in pieces of bounded size.

#include "core/base/text.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

class TextFileReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextPiece(DocumentPiece* piece) override {
    while (pending_.size() <= kPieceBytes && !complete_) {
      ASSIGN_OR_RETURN(const bool more, ReadMore());
      if (!more) return false;
    }
    const size_t length = PieceLength(pending_);
    piece->text.assign(pending_, 0, length);
    pending_.erase(0, length);
    piece->first = !started_;
    piece->last = complete_ && pending_.empty();
    started_ = !piece->last;
    if (piece->last) complete_ = false;
    return true;
  }

  // Returns a whole document.
  absl::StatusOr<bool> NextRow(Row* row) override {
    row->values.assign(1, "");
    DocumentPiece piece;
    do {
      ASSIGN_OR_RETURN(const bool more, NextPiece(&piece));
      if (!more) return false;
      row->values[0] += piece.text;
      row->line = line_;
      if (row->values[0].size() > kRowBytes)
        return Fail(line_, "the text is longer than ", kRowBytes, " bytes");
    } while (!piece.last);
    return true;
  }

  // Returns a line.
  absl::StatusOr<bool> NextRecord(bool wait, Record* record) override {
    do {
      ASSIGN_OR_RETURN(const bool more, NextLine(wait, &chunk_, record));
      if (!more) return false;
      if (!record->wrong.ok()) return true;
    } while (
        !request_.record.blank_lines && chunk_.find_first_not_of(" \t\r\v\f") == std::string::npos);
    record->wrong =
        Annotate(ParseTextRecord(std::move(chunk_), request_.record, request_.spec, record),
            QuotePath(path()), ":", record->line);
    return true;
  }

 private:
  // Reads a line, or a part of a long one; false after the last document.
  absl::StatusOr<bool> ReadMore() {
    const bool new_line = !lines_.continued();
    ASSIGN_OR_RETURN(const bool more, lines_.Next(&chunk_));
    const bool has_document = started_ || !pending_.empty();
    complete_ = !more && has_document;
    if (!more) return complete_;
    if (new_line) line_has_text_ = false;
    if (line_has_text_ || !IsBlank(chunk_)) {
      if (!has_document) line_ = lines_.line_number();
      if (!line_has_text_ && has_document) pending_ += ' ';
      pending_ += chunk_;
      line_has_text_ = true;
    }
    const bool border = request_.spec.documents() == DataSpec::LINE || !line_has_text_;
    complete_ = !lines_.continued() && border && (started_ || !pending_.empty());
    return true;
  }

  std::string pending_, chunk_;
  bool line_has_text_ = false;
  bool started_ = false;   // a piece of this document was returned
  bool complete_ = false;  // pending_ is the rest of the document
  int64_t line_ = 0;       // where the document begins
};

}  // namespace

size_t PieceLength(absl::string_view text) {
  if (text.size() <= kPieceBytes) return text.size();
  // A space belongs to the next word.
  const size_t space = text.substr(0, kPieceBytes + 1).find_last_of(" \t\r\n");
  if (space != absl::string_view::npos && space > 0) return space;
  return Utf8Floor(text, kPieceBytes);
}

extern const Format kTextFormat = {DataSpec::TEXT, ".txt", Format::kTexts,
    [](const std::string& text, const DataSpec& /*spec*/) { return text.size(); },
    OpenAs<TextFileReader>, 256 << 10};

}  // namespace cloze
