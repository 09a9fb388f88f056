#include "core/base/text_source.h"

#include <utility>

#include "core/base/file.h"

namespace cloze {
namespace {

class Lines : public TextSource {
 public:
  explicit Lines(LineReader reader) : reader_(std::move(reader)) {}

  absl::StatusOr<bool> Next(std::string* text) override { return reader_.Next(text); }
  absl::string_view end() const override { return reader_.line_end(); }
  int64_t line() const override { return reader_.line_number(); }
  int64_t position() const override { return reader_.stored_position(); }

 private:
  LineReader reader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextSource>> OpenLines(const std::string& path) {
  return OpenEncodedLines(path, Charset::kUtf8);
}

absl::StatusOr<std::unique_ptr<TextSource>> OpenEncodedLines(
    const std::string& path, Charset fallback) {
  ASSIGN_OR_RETURN(
      LineReader reader, LineReader::Open(path, LineReader::kDefaultMaxLine, fallback));
  return std::make_unique<Lines>(std::move(reader));
}

}  // namespace cloze
