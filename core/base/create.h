// Creating files and directories, for those who have to know how it failed or how to undo it.
#ifndef CLOZE_CORE_BASE_CREATE_H_
#define CLOZE_CORE_BASE_CREATE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// An error of the system, `errno`: "path: what: why".
absl::Status Errno(Exit exit, absl::string_view what, absl::string_view path);

// What a failed attempt to create something is: kIo when the disk is full or broken, else
// kCannotCreate.
Exit ExitOfCreate(int error);

// As MakeDirectories(path) in core/base/file.h; appends to *made those that were missing, the
// outermost first, also before an error.
absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made);

// Makes `path`, which must not exist, lets `write` fill it, fsyncs and closes it; after an error it
// is gone.
absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write);

// A name beside `path` for what will take its place; a file that a dead process with our number
// left there is removed.
std::string TemporaryName(const std::string& path);

// Lets `write` fill the file of a TemporaryName and renames it to `path`: a crash leaves the old or
// the new file, whole.
absl::Status ReplaceFile(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& temporary)> write);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CREATE_H_
