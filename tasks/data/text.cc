// TEXT files: documents in pieces of bounded size.
#include <algorithm>

#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int64_t kChunkBytes = 256 << 10;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Documents of one TEXT file in pieces.
class TextPieces : public PieceReader {
 public:
  static absl::StatusOr<std::unique_ptr<TextPieces>> Open(
      const std::string& path, DataSpec::Documents documents);
  absl::StatusOr<bool> Next(DocumentPiece* piece) override;
  // Line where the current document begins.
  int64_t line() const { return line_; }
  int64_t position() const override { return reader_.position(); }

 private:
  TextPieces(LineReader reader, DataSpec::Documents documents)
      : reader_(std::move(reader)), documents_(documents) {}
  absl::Status ReadMore();

  LineReader reader_;
  DataSpec::Documents documents_;
  std::string pending_, chunk_;
  bool mid_line_ = false;  // more of the line follows
  bool line_has_text_ = false;
  bool started_ = false;   // a piece of this document was returned
  bool complete_ = false;  // pending_ is the rest of the document
  bool end_ = false;
  int64_t line_ = 0;
};

class TextRows : public RowReader {
 public:
  TextRows(std::string path, std::unique_ptr<TextPieces> pieces)
      : path_(std::move(path)), pieces_(std::move(pieces)) {}

  absl::StatusOr<bool> Next(std::vector<std::string>* values) override {
    values->assign(1, "");
    while (true) {
      ASSIGN_OR_RETURN(const bool more, pieces_->Next(&piece_));
      if (!more) return false;
      (*values)[0] += piece_.text;
      if ((*values)[0].size() > kRowBytes)
        return DataError(
            path_, line(), absl::StrCat("the text is longer than ", kRowBytes, " bytes"));
      if (piece_.last) return true;
    }
  }
  int64_t line() const override { return pieces_->line(); }
  int64_t position() const override { return pieces_->position(); }

 private:
  std::string path_;
  std::unique_ptr<TextPieces> pieces_;
  DocumentPiece piece_;
};

absl::StatusOr<std::unique_ptr<TextPieces>> TextPieces::Open(
    const std::string& path, DataSpec::Documents documents) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kChunkBytes));
  return std::unique_ptr<TextPieces>(new TextPieces(std::move(reader), documents));
}

absl::StatusOr<bool> TextPieces::Next(DocumentPiece* piece) {
  while (true) {
    if (pending_.size() > kPieceBytes || complete_) {
      const int64_t length = PieceLength(pending_);
      piece->text.assign(pending_, 0, length);
      pending_.erase(0, length);
      piece->first = !started_;
      piece->last = complete_ && pending_.empty();
      started_ = !piece->last;
      if (piece->last) complete_ = false;
      return true;
    }
    if (end_) return false;
    RETURN_IF_ERROR(ReadMore());
  }
}

absl::Status TextPieces::ReadMore() {
  ASSIGN_OR_RETURN(const bool more, reader_.Next(&chunk_));
  const bool has_document = started_ || !pending_.empty();
  if (!more) {
    end_ = true;
    complete_ = has_document;
    return absl::OkStatus();
  }
  const bool new_line = !mid_line_;
  mid_line_ = reader_.continued();
  if (new_line) line_has_text_ = false;
  if (line_has_text_ || !IsBlank(chunk_)) {
    if (!has_document) line_ = reader_.line_number();
    if (!line_has_text_ && has_document) pending_ += ' ';
    pending_ += chunk_;
    line_has_text_ = true;
  }
  if (mid_line_) return absl::OkStatus();
  const bool border = documents_ == DataSpec::LINE || !line_has_text_;
  complete_ = border && (started_ || !pending_.empty());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PieceReader>> OpenPieces(
    const std::string& path, const DataSpec& spec) {
  return TextPieces::Open(path, spec.documents());
}

// The table of formats decides the parameters' types.
absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const std::string& path, const DataSpec& spec,
    std::vector<Field>) {  // NOLINT(performance-unnecessary-value-param)
  ASSIGN_OR_RETURN(std::unique_ptr<TextPieces> pieces, TextPieces::Open(path, spec.documents()));
  return std::make_unique<TextRows>(path, std::move(pieces));
}

}  // namespace

int64_t PieceLength(absl::string_view text) {
  if (text.size() <= kPieceBytes) return text.size();
  for (int64_t cut = kPieceBytes; cut > 0; --cut) {
    if (IsSpace(text[cut])) return cut;  // a blank belongs to the next word
  }
  int64_t cut = kPieceBytes;
  while (cut > kPieceBytes - 3 && (text[cut] & 0xC0) == 0x80) --cut;
  return cut;
}

Format TextFormat() {
  return {.format = DataSpec::TEXT,
      .extension = ".txt",
      .whole = [](const std::string& text) { return text.size(); },
      .rows = OpenRows,
      .pieces = OpenPieces};
}

}  // namespace cloze
