// Creates files and folders atomically: after a crash the old or the new one is there, complete.
//
// Temporary names are "PATH.tmp-<pid>", so that files of dead processes can be recognized. They are
// removed before PATH is written again.
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

// Like MakeDirectories(path) in core/base/file.h. Appends the directories it created to *made,
// outermost first, even if it fails later.
absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made);

// Creates `path`, which must not exist, calls `write` to
// fill it, fsyncs and closes it. Removes it after an error.
absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write);

// Returns the temporary name of `path` for this process, which does not exist. Removes the files of
// dead processes under temporary names of `path`.
std::string TemporaryName(const std::string& path);

// Calls `write` to create TemporaryName(path), renames it to `path` and fsyncs the directory.
absl::Status ReplaceFile(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& temporary)> write);

// A new folder under a temporary name. Removed by the
// destructor, with the files in it, unless Commit succeeded.
class AtomicFolder {
 public:
  // Makes the folder TemporaryName(path); kCannotCreate or kIo.
  static absl::StatusOr<AtomicFolder> Create(const std::string& path);
  AtomicFolder(AtomicFolder&& other) noexcept;
  ~AtomicFolder();

  // Returns the folder to write to. Every file must be fsynced before Commit.
  const std::string& path() const { return temporary_; }
  // Fsyncs the folder, renames it to the final path and fsyncs
  // the parent. kCannotCreate when the final path exists.
  absl::Status Commit();

 private:
  AtomicFolder() = default;
  std::string final_, temporary_;
};

// Removes temporary files and folders of dead processes, or of an earlier process with our number,
// from `directory`, if `ours` accepts their final name. Requires that this process has not written
// there yet. Does not follow links or remove nested folders.
void RemoveLeftovers(
    const std::string& directory, absl::FunctionRef<bool(absl::string_view name)> ours);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CREATE_H_
