#undef _FORTIFY_SOURCE  // its inline versions could not be defined here
#include "tests/durability/faults.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <utility>

namespace cloze {
namespace {

std::atomic<bool> armed = false;
std::mutex mutex;
std::string folder;
int64_t fail_at = 0, count = 0;
Fault fault = Fault::kNone;
bool no_space_next = false;
std::vector<FileCall> calls;
std::function<int(const FileCall&)> hook;
thread_local bool in_hook = false;
std::atomic<int64_t> clock_jump = 0, looks = 0;

std::string PathOf(int fd) {
  char link[64], path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link, path, sizeof(path));
  return n > 0 ? std::string(path, n) : "";
}

// What shall happen to this call: 0 nothing, else an errno; -1: a short write.
int Meet(const char* name, const std::string& path) {
  if (path.compare(0, folder.size(), folder) != 0) return 0;
  if (hook != nullptr && !in_hook) {
    in_hook = true;
    const int error = hook({name, path});
    in_hook = false;
    if (error != 0) return error;
  }
  if (std::strstr(name, "read") != nullptr) return 0;
  const std::lock_guard<std::mutex> lock(mutex);
  calls.push_back({name, path});
  const bool write = std::strcmp(name, "write") == 0;
  if (std::exchange(no_space_next, false) && write) return ENOSPC;
  if (++count != fail_at) return 0;
  switch (fault) {
    case Fault::kNone: return 0;
    case Fault::kNoSpace: return ENOSPC;
    case Fault::kIo: return EIO;
    case Fault::kShort: return write ? (no_space_next = true, -1) : 0;
    case Fault::kKill: ::kill(::getpid(), SIGKILL);
  }
  return 0;
}

int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

void ArmFaults(const std::string& in, int64_t at, Fault what) {
  folder = in;
  fail_at = at;
  fault = what;
  count = 0;
  no_space_next = false;
  calls.clear();
  armed = true;
}

void SetFaultHook(std::function<int(const FileCall&)> now) { hook = std::move(now); }

std::vector<FileCall> DisarmFaults() {
  armed = false;
  hook = nullptr;
  return std::move(calls);
}

void SetClockJump(int64_t seconds_a_look) {
  clock_jump = seconds_a_look;
  looks = 0;
}

}  // namespace cloze

using cloze::armed, cloze::Fail, cloze::Meet;

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  if (armed) {
    if (fd == 2 && ::memmem(data, size, "saved ", 6) != nullptr)
      cloze::calls.push_back({"say", "saved"});
    const int fate = Meet("write", cloze::PathOf(fd));
    if (fate > 0) return Fail(fate);
    if (fate < 0) size /= 2;
  }
  return ::syscall(SYS_write, fd, data, size);
}

int fsync(int fd) {
  const int fate = armed ? Meet("fsync", cloze::PathOf(fd)) : 0;
  return fate > 0 ? Fail(fate) : static_cast<int>(::syscall(SYS_fsync, fd));
}

int close(int fd) {
  const int fate = armed && fd > 2 ? Meet("close", cloze::PathOf(fd)) : 0;
  const int result = static_cast<int>(::syscall(SYS_close, fd));
  return fate > 0 ? Fail(EIO) : result;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const int fate = armed ? Meet((flags & O_CREAT) != 0 ? "open" : "open to read", path) : 0;
  return fate > 0 ? Fail(fate)
                  : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t pread(int fd, void* data, size_t size, off_t at) {
  const int fate = armed ? Meet("read", cloze::PathOf(fd)) : 0;
  return fate > 0 ? Fail(fate) : ::syscall(SYS_pread64, fd, data, size, at);
}

int mkdir(const char* path, mode_t mode) {
  const int fate = armed ? Meet("mkdir", path) : 0;
  return fate > 0 ? Fail(fate) : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

int unlink(const char* path) noexcept {
  const int fate = armed ? Meet("unlink", path) : 0;
  return fate > 0 ? Fail(EIO) : static_cast<int>(::syscall(SYS_unlink, path));
}

int rmdir(const char* path) noexcept {
  const int fate = armed ? Meet("rmdir", path) : 0;
  return fate > 0 ? Fail(EIO) : static_cast<int>(::syscall(SYS_rmdir, path));
}

int rename(const char* from, const char* to) noexcept {
  const int fate = armed ? Meet("rename", to) : 0;
  return fate > 0 ? Fail(fate) : static_cast<int>(::syscall(SYS_rename, from, to));
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  const int fate = armed ? Meet("rename", to) : 0;
  return fate > 0 ? Fail(fate)
                  : static_cast<int>(::syscall(SYS_renameat2, from_fd, from, to_fd, to, flags));
}

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += cloze::clock_jump * ++cloze::looks;
  return result;
}

}  // extern "C"
