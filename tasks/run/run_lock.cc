#include "tasks/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/file.h"

namespace cloze {
namespace {

// True if `fd` is still the file of that name: another process may have removed it between open and
// flock.
bool HasName(const Fd& fd, const std::string& path) {
  struct stat mine, named;
  return ::fstat(fd.get(), &mine) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Acquire(const std::string& run_dir) {
  RunLock lock;
  absl::Status status = MakeDirectories(run_dir, &lock.made_);
  lock.path_ = JoinPath(run_dir, "run.lock");
  while (status.ok()) {
    const bool existed = PathExists(lock.path_);
    lock.fd_ = Fd(
        ::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!lock.fd_.ok()) {
      status = Error(
          ExitOfCreate(errno), QuotePath(lock.path_), ": cannot create: ", std::strerror(errno));
    } else if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      status = Error(Exit::kCannotCreate, QuotePath(run_dir), ": ",
          errno == EWOULDBLOCK ? "another process is running in this directory (choose another "
                                 "output.directory or wait for it)"
                               : "cannot lock: ",
          std::strerror(errno));
    } else if (HasName(lock.fd_, lock.path_)) {
      lock.made_file_ = !existed;
      return lock;
    }
  }
  lock.Undo();
  return status;
}

void RunLock::Undo() {
  if (made_file_) ::unlink(path_.c_str());
  for (; !made_.empty() && ::rmdir(made_.back().c_str()) == 0; made_.pop_back()) {
  }
  fd_ = Fd();
}

}  // namespace cloze
