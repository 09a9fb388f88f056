// A look at text-format bytes before protobuf's parser sees them, and the way back from its
// positions to lines and columns.
#ifndef CLOZE_PROTO_TEXT_SCAN_H_
#define CLOZE_PROTO_TEXT_SCAN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

class TextScan {
 public:
  // `text` must outlive the scan.
  TextScan(absl::string_view text, std::string path);

  // kSpec when messages nest deeper than `max_depth` or a number has a leading zero, which protobuf
  // would read as octal.
  absl::Status Check(int max_depth);

  // "path:line:column" of a byte; counted from 1, columns in characters.
  std::string Where(size_t offset) const;
  // Byte of protobuf's zero-based line and column, which counts a tab as up to 8.
  size_t Offset(int line, int column) const;
  // Start of the last word `name` before `offset`, outside strings and comments; `offset` itself
  // when there is none. Valid after Check.
  size_t LastWordBefore(absl::string_view name, size_t offset) const;

 private:
  size_t SkipString(size_t at) const;
  absl::Status CheckNumber(size_t begin, size_t end) const;

  absl::string_view text_;
  std::string path_;
  std::vector<size_t> lines_;                     // offset of each line
  std::vector<std::pair<size_t, size_t>> words_;  // [begin, end) of names and numbers
};

}  // namespace cloze

#endif  // CLOZE_PROTO_TEXT_SCAN_H_
