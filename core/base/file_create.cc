// Creating files and folders.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"

namespace cloze {
namespace {

constexpr absl::string_view kMark = ".tmp-";

// Removes a file, or a folder with the files in it.
void RemoveTemporary(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  const auto names = ListDirectory(path);
  if (!names.ok()) return;
  for (const std::string& name : *names) ::unlink(JoinPath(path, name).c_str());
  ::rmdir(path.c_str());
}

// Opens a directory for Sync.
absl::StatusOr<Fd> OpenDirectory(const std::string& directory) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) return Errno(Exit::kIo, "cannot open the directory", directory);
  return fd;
}

absl::Status Sync(const Fd& fd, const std::string& directory) {
  return ::fsync(fd.get()) == 0 ? absl::OkStatus()
                                : Errno(Exit::kIo, "cannot fsync the directory", directory);
}

// Splits "NAME.tmp-<pid>" or "NAME.tmp-<pid>.data" into *name and the number of the process; 0 for
// other names.
pid_t OwnerOf(absl::string_view entry, absl::string_view* name) {
  const size_t mark = entry.rfind(kMark);
  if (mark == absl::string_view::npos) return 0;
  *name = entry.substr(0, mark);
  absl::string_view owner = entry.substr(mark + kMark.size());
  absl::ConsumeSuffix(&owner, ".data");
  pid_t pid = 0;
  return absl::SimpleAtoi(owner, &pid) ? std::max(pid, 0) : 0;
}

}  // namespace

void RemoveLeftovers(
    const std::string& directory, absl::FunctionRef<bool(absl::string_view name)> ours, bool own) {
  const auto entries = ListDirectory(directory);
  if (!entries.ok()) return;
  for (const std::string& entry : *entries) {
    absl::string_view name;
    const pid_t pid = OwnerOf(entry, &name);
    if (pid == 0 || !ours(name)) continue;
    const bool dead = pid == ::getpid() ? own : ::kill(pid, 0) != 0 && errno == ESRCH;
    const std::string path = JoinPath(directory, entry);
    struct stat info;
    if (dead && ::lstat(path.c_str(), &info) == 0 &&
        (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)))
      RemoveTemporary(path);
  }
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
      if (made != nullptr) made->push_back(part);
      RETURN_IF_ERROR(SyncDirectory(DirectoryOf(part)));
      continue;
    }
    const int error = errno;
    struct stat info;
    const bool there = ::stat(part.c_str(), &info) == 0;
    if (there && S_ISDIR(info.st_mode)) continue;  // another process was faster
    if (there || errno == ENOENT) errno = error;   // else the disk fails
    return Errno(ExitOfCreate(errno), "cannot make the directory", part);
  }
  return absl::OkStatus();
}

void RemoveEmpty(const std::vector<std::string>& folders) {
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    if (::rmdir(folder->c_str()) != 0) return;
}

absl::Status WriteAll(const Fd& fd, absl::string_view path, const void* data, int64_t size) {
  const char* in = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd.get(), in, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(Exit::kIo, "cannot write", path);
    in += n, size -= n;
  }
  return absl::OkStatus();
}

absl::Status CreateFile(const std::string& path, absl::FunctionRef<absl::Status(const Fd&)> write) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd.ok()) return Errno(ExitOfCreate(errno), "cannot create", path);
  absl::Cleanup remove = [&] { ::unlink(path.c_str()); };  // also after std::bad_alloc
  absl::Status status = write(fd);
  if (status.ok() && ::fsync(fd.get()) != 0) status = Errno(Exit::kIo, "cannot fsync", path);
  if (status.ok()) status = fd.Close(path);
  if (status.ok()) std::move(remove).Cancel();
  return status;
}

absl::Status WriteNewFile(const std::string& path, absl::string_view content) {
  return CreateFile(
      path, [&](const Fd& fd) { return WriteAll(fd, path, content.data(), content.size()); });
}

std::string TemporaryName(const std::string& path) {
  const std::string name = BaseName(path);
  RemoveLeftovers(
      DirectoryOf(path), [&](absl::string_view n) { return n == name; }, /*own=*/false);
  std::string temporary = absl::StrCat(path, kMark, ::getpid());
  RemoveTemporary(temporary);
  return temporary;
}

absl::Status ReplaceFile(const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& temporary)> write, bool replace) {
  const std::string temporary = TemporaryName(path), directory = DirectoryOf(path);
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };
  RETURN_IF_ERROR(write(temporary));
  ASSIGN_OR_RETURN(const Fd opened, OpenDirectory(directory));  // before anything is replaced
  if (!replace) {
    RETURN_IF_ERROR(RenameNew(temporary, path));
  } else if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return Errno(Exit::kIo, "cannot rename to", path);
  }
  std::move(remove).Cancel();
  absl::Status status = Sync(opened, directory);
  if (!status.ok() && !replace) ::unlink(path.c_str());
  return status;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  return ReplaceFile(
      path, [&](const std::string& temporary) { return WriteNewFile(temporary, content); });
}

absl::Status RenameNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return absl::OkStatus();
  if (errno == EINVAL || errno == ENOSYS) {  // not supported by this file system
    if (PathExists(to)) return Error(Exit::kCannotCreate, QuotePath(to), ": exists already");
    if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  }
  return Errno(errno == EEXIST ? Exit::kCannotCreate : Exit::kIo, "cannot rename to", to);
}

absl::Status SyncDirectory(const std::string& directory) {
  ASSIGN_OR_RETURN(const Fd fd, OpenDirectory(directory));
  return Sync(fd, directory);
}

absl::StatusOr<AtomicFolder> AtomicFolder::Create(const std::string& path) {
  const std::string temporary = TemporaryName(path);
  if (::mkdir(temporary.c_str(), 0777) != 0)
    return Errno(ExitOfCreate(errno), "cannot make the directory", temporary);
  return AtomicFolder(path, temporary);
}

absl::StatusOr<AtomicFolder> AtomicFolder::CreateOutput(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty())
    return Error(Exit::kUsage, "the folder to write: no name: expected a new folder");
  if (PathExists(path)) {
    return Error(Exit::kCannotCreate, QuotePath(path), ": exists already (choose a new folder)");
  }
  AtomicFolder folder(path, /*temporary=*/"");
  RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path), &folder.parents_));
  ASSIGN_OR_RETURN(AtomicFolder made, Create(path));
  made.parents_.swap(folder.parents_);
  return made;
}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) RemoveTemporary(temporary_);
  RemoveEmpty(parents_);
}

absl::Status AtomicFolder::Commit() {
  const std::string directory = DirectoryOf(final_);
  ASSIGN_OR_RETURN(const Fd opened, OpenDirectory(directory));
  RETURN_IF_ERROR(SyncDirectory(temporary_));
  RETURN_IF_ERROR(RenameNew(temporary_, final_));
  if (absl::Status status = Sync(opened, directory); !status.ok()) {
    if (!RenameNew(final_, temporary_).ok()) temporary_.clear(), parents_.clear();
    return status;
  }
  temporary_.clear();
  parents_.clear();
  return absl::OkStatus();
}

}  // namespace cloze
