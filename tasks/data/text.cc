// TEXT files: documents in pieces of bounded size.
#include <algorithm>

#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int64_t kChunkBytes = 256 << 10;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class TextRows : public RowReader {
 public:
  TextRows(std::string path, std::unique_ptr<PieceReader> pieces)
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
  std::unique_ptr<PieceReader> pieces_;
  DocumentPiece piece_;
};

}  // namespace

int64_t PieceLength(absl::string_view text) {
  if (text.size() <= kPieceBytes) return text.size();
  for (int64_t cut = kPieceBytes; cut > 0; --cut) {
    if (IsSpace(text[cut])) return cut;  // a blank belongs to the word behind it
  }
  int64_t cut = kPieceBytes;
  while (cut > kPieceBytes - 3 && (text[cut] & 0xC0) == 0x80) --cut;
  return cut;
}

absl::StatusOr<std::unique_ptr<PieceReader>> PieceReader::Open(
    const std::string& path, DataSpec::Documents documents) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kChunkBytes));
  return std::unique_ptr<PieceReader>(new PieceReader(std::move(reader), documents));
}

absl::StatusOr<bool> PieceReader::Next(DocumentPiece* piece) {
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

absl::Status PieceReader::ReadMore() {
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

absl::StatusOr<std::unique_ptr<RowReader>> OpenTextRows(
    const std::string& path, DataSpec::Documents documents) {
  ASSIGN_OR_RETURN(std::unique_ptr<PieceReader> pieces, PieceReader::Open(path, documents));
  return std::make_unique<TextRows>(path, std::move(pieces));
}

}  // namespace cloze
