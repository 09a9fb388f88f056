// Creating files and folders so that a crash leaves the old one or the new one, whole.
//
// Temporary names are "PATH.tmp-<pid>", beside the path they will replace, so the process that
// left one behind is known. Whoever writes PATH again first removes what dead processes left there.
#ifndef CLOZE_CORE_BASE_CREATE_H_
#define CLOZE_CORE_BASE_CREATE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// Returns an error for `errno`: "path: what: why".
absl::Status Errno(Exit exit, absl::string_view what, absl::string_view path);

// Returns the exit code of a failed attempt to create something: kIo when the disk is full or
// broken, else kCannotCreate.
Exit ExitOfCreate(int error);

// Like MakeDirectories(path) in core/base/file.h; appends the directories it made to *made,
// outermost first, also before an error.
absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made);

// Creates `path`, which must not exist, lets `write` fill it, fsyncs and closes it. Removes it
// after an error.
absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write);

// Returns the temporary name of `path` for this process, where nothing exists now: removes what
// dead processes left under temporary names of `path`.
std::string TemporaryName(const std::string& path);

// Lets `write` create the file TemporaryName(path), renames it to `path` and fsyncs the directory.
absl::Status ReplaceFile(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& temporary)> write);

// A new folder under a temporary name. Removed by the destructor, with the files in it, unless
// Commit succeeded.
class AtomicFolder {
 public:
  // Makes the folder TemporaryName(path); kCannotCreate or kIo.
  static absl::StatusOr<AtomicFolder> Create(const std::string& path);
  AtomicFolder(AtomicFolder&& other) noexcept;
  ~AtomicFolder();

  // Where to put the files: each must be on disk (fsynced) before Commit.
  const std::string& path() const { return temporary_; }
  // Fsyncs the folder, renames it to the final path and fsyncs the parent. kCannotCreate when the
  // final path exists.
  absl::Status Commit();

 private:
  AtomicFolder() = default;
  std::string final_, temporary_;
};

// Removes from `directory` the temporary files and folders that dead processes left, or an earlier
// process with our number, for each final name that `ours` accepts. Call it before this process
// writes there. Follows no links and removes no folders inside of folders.
void RemoveLeftovers(
    const std::string& directory, absl::FunctionRef<bool(absl::string_view name)> ours);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CREATE_H_
