// Standard output, signals and temporary folders, for all commands.
#ifndef CLOZE_TOOLS_PROCESS_H_
#define CLOZE_TOOLS_PROCESS_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/status.h"

namespace cloze {

// Writes all of `text` to standard output at once; a terminal gets it as ForTerminal returns it,
// because it may repeat a file. kIo when that fails, for example on a full disk. When the reader
// has closed the pipe (EPIPE), IsReaderGone() is true for the error, and the program ends quietly.
absl::Status WriteStdout(absl::string_view text);
// Writes tables of AlignedTable, whose colours a terminal may obey, as WriteStdout does.
absl::Status WriteTables(absl::string_view tables);
bool IsReaderGone(const absl::Status& status);

// Collects lines and writes them out in whole lines. Flush before waiting for more input and at the
// end: the destructor writes nothing.
class LineWriter {
 public:
  LineWriter() = default;  // to standard output
  // To a file, which must outlive this.
  LineWriter(const Fd* file, std::string path) : file_(file), path_(std::move(path)) {}

  // Appends `line` and a newline; writes when the buffer is large.
  absl::Status Write(absl::string_view line) { return WriteText(absl::StrCat(line, "\n")); }
  // Appends whole lines with their ends; on a terminal as WriteStdout.
  absl::Status WriteText(absl::string_view lines);
  // Writes tables of AlignedTable, at once.
  absl::Status WriteTables(absl::string_view tables);
  absl::Status Flush();

 private:
  const Fd* file_ = nullptr;
  std::string path_, buffer_;
};

// Calls `write` with a writer to the file `out`, which gets its name when all is written, or to
// standard output if `out` is empty or "-". kCannotCreate if the file exists and `force` is false.
absl::Status WriteOutput(
    const std::string& out, bool force, absl::FunctionRef<absl::Status(LineWriter&)> write);
// Returns kCannotCreate if no files can be created in `folder` or, if it is missing, in the nearest
// folder above it.
absl::Status CheckCanCreate(std::string folder);
// Returns kUsage if the name of the file `out` has an extension that is not one of `known` (without
// their dots); `hint` says what helps besides another name. Names without extension and "-" pass.
absl::Status CheckExtension(
    const std::string& out, const std::vector<std::string>& known, absl::string_view hint = "");
// Returns kUsage if the name of the folder `out` is one of a file, such as model.onnx.
absl::Status CheckFolderName(const std::string& out);
// Returns kCannotCreate if the folder of `out` does not exist, or if `out` exists and is not a file
// that `force` replaces.
absl::Status CheckOutput(const std::string& out, bool force);

// Returns a flag that the first SIGINT, SIGTERM, SIGUSR1 or SIGHUP sets. The second signal ends the
// process at once with 128 + its number. SIGHUP stays ignored if it was (nohup).
const std::atomic<bool>* StopOnSignals();
// kInterrupted if that flag is set.
absl::Status CheckSignals();

// A temporary folder "cloze.tmp-<pid>-<8 hexadecimal digits>". The destructor deletes it or, if the
// process was killed, the next Create of the same user. Its process holds a lock on it, which ends
// with the process; so a number that another process has now does not matter.
class ScratchFolder {
 public:
  // Creates the folder in $TMPDIR or the system's folder. kCannotCreate on failure.
  static absl::StatusOr<ScratchFolder> Create();
  ScratchFolder(ScratchFolder&& other) noexcept { *this = std::move(other); }
  ScratchFolder& operator=(ScratchFolder&& other) noexcept {
    std::swap(path_, other.path_), std::swap(lock_, other.lock_);
    return *this;
  }
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  ScratchFolder() = default;
  std::string path_;
  Fd lock_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_PROCESS_H_
