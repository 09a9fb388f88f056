#include "core/base/create.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cloze {

absl::Status Errno(Exit exit, absl::string_view what, absl::string_view path) {
  return Error(exit, absl::StrCat(QuotePath(path), ": ", what, ": ", std::strerror(errno)));
}

Exit ExitOfCreate(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO ? Exit::kIo : Exit::kCannotCreate;
}

absl::Status MakeDirectories(const std::string& path, std::vector<std::string>* made) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (IsDirectory(part)) continue;
    if (::mkdir(part.c_str(), 0777) == 0) {
      made->push_back(part);
      RETURN_IF_ERROR(SyncDirectory(DirectoryOf(part)));
      continue;
    }
    const int error = errno;
    if (IsDirectory(part)) continue;  // another process was faster
    errno = error;
    return Errno(ExitOfCreate(error), "cannot make the directory", part);
  }
  return absl::OkStatus();
}

absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd.ok()) return Errno(ExitOfCreate(errno), "cannot create", path);
  absl::Status status = write(fd);
  if (status.ok() && ::fsync(fd.get()) != 0) status = Errno(Exit::kIo, "cannot fsync", path);
  if (status.ok()) status = fd.Close(path);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

std::string TemporaryName(const std::string& path) {
  std::string temporary = absl::StrCat(path, ".tmp-", ::getpid());
  ::unlink(temporary.c_str());
  return temporary;
}

absl::Status ReplaceFile(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& temporary)> write) {
  const std::string temporary = TemporaryName(path);
  absl::Status status = write(temporary);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = Errno(Exit::kIo, "cannot rename to", path);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(DirectoryOf(path));
}

}  // namespace cloze
