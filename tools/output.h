// Writing to standard output in whole lines, with every failure noticed.
#ifndef CLOZE_TOOLS_OUTPUT_H_
#define CLOZE_TOOLS_OUTPUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/json.h"
#include "core/base/status.h"

namespace cloze {

// Writes all of `text` to standard output at once. kIo when that fails, for example on a full disk.
// When the reader has closed the pipe (EPIPE), IsReaderGone() is true for the error, and the
// program ends quietly.
absl::Status WriteStdout(absl::string_view text);
bool IsReaderGone(const absl::Status& status);

// Collects lines and writes them out in whole lines. Flush before waiting for more input and at the
// end: the destructor writes nothing.
class LineWriter {
 public:
  // Appends `line` and a newline; writes when the buffer is large.
  absl::Status Write(absl::string_view line);
  absl::Status Flush();

 private:
  std::string buffer_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_OUTPUT_H_
