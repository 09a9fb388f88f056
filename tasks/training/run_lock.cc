// One process a run directory: flock on run.lock, which the kernel gives up with the process.
#include "tasks/training/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cloze {

absl::StatusOr<RunLock> RunLock::Acquire(const std::string& run_dir) {
  const std::string path = JoinPath(run_dir, "run.lock");
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!fd.ok()) return Error(Exit::kCannotCreate, absl::StrCat(Quote(path), ": cannot create: ", std::strerror(errno)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return RunLock(std::move(fd));
  const bool held = errno == EWOULDBLOCK;
  return Error(Exit::kCannotCreate,
               absl::StrCat(Quote(run_dir), ": ",
                            held ? "another process is running in this directory; choose another output.directory or wait for it"
                                 : absl::StrCat("cannot lock: ", std::strerror(errno))));
}

}  // namespace cloze
