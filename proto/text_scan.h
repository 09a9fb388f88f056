// Checks text-format bytes before protobuf parses them, and maps its positions to lines and
// columns.
#ifndef CLOZE_PROTO_TEXT_SCAN_H_
#define CLOZE_PROTO_TEXT_SCAN_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

// True for a number that protobuf would read as octal: digits after a leading zero.
bool IsOctal(absl::string_view number);

class TextScan {
 public:
  // `text` must outlive the scan.
  TextScan(absl::string_view text, std::string path);

  // kSpec if messages nest deeper than `max_depth` or a number is octal.
  absl::Status Check(int max_depth);

  // Returns "path:line:column" of a byte, both counted from 1, columns in characters.
  std::string Where(size_t offset) const;
  // Returns the byte at protobuf's line and column, which count from 0 and expand tabs to 8.
  size_t Offset(int line, int column) const;
  // Returns the start of the last word `name` before `offset`, outside strings and comments, or
  // `offset` if there is none. Requires Check.
  size_t LastWordBefore(absl::string_view name, size_t offset) const;

 private:
  size_t SkipString(size_t at) const;

  absl::string_view text_;
  std::string path_;
  std::vector<size_t> lines_;                     // offset of each line
  std::vector<std::pair<size_t, size_t>> words_;  // [begin, end) of names and numbers
};

}  // namespace cloze

#endif  // CLOZE_PROTO_TEXT_SCAN_H_
