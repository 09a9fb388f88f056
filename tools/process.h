// What commands share of the process: standard output, signals, temporary folders.
#ifndef CLOZE_TOOLS_PROCESS_H_
#define CLOZE_TOOLS_PROCESS_H_

#include <atomic>
#include <string>
#include <utility>

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

// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets. The second signal ends the process
// at once with 128 + its number. SIGHUP stays ignored if it was (nohup).
const std::atomic<bool>* StopOnSignals();

// A temporary folder that its object deletes.
class TemporaryFolder {
 public:
  // Creates the folder in $TMPDIR or the system's folder. kCannotCreate on failure.
  static absl::StatusOr<TemporaryFolder> Create();
  TemporaryFolder(TemporaryFolder&& other) noexcept { std::swap(path_, other.path_); }
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_PROCESS_H_
