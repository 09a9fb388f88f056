#include "tools/process.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/cord.h"
#include "core/base/file.h"
#include "core/base/system.h"

namespace cloze {
namespace {

constexpr size_t kFlushBytes = 1 << 16;
constexpr char kReaderGone[] = "cloze/reader-gone";

// Of signals within this time, which `timeout` and mpirun send to a process and to its group, the
// later ones are ignored.
constexpr double kSameRequestSeconds = 0.5;

std::atomic<bool> stop = false;
std::atomic<double> first_signal = 0;  // SteadySeconds; 0: none

void OnSignal(int signal) {
  const double now = SteadySeconds();
  double first = 0;
  if (!first_signal.compare_exchange_strong(first, now)) {
    if (now - first >= kSameRequestSeconds) ::_exit(128 + signal);
    return;
  }
  stop = true;
  constexpr char kMessage[] =
      "\nstopping as soon as possible; a second signal ends the program immediately\n";
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  errno = error;
}

}  // namespace

absl::Status WriteStdout(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(n);
    } else if (errno != EINTR) {
      absl::Status status =
          Error(Exit::kIo, "standard output: cannot write: ", std::strerror(errno));
      if (errno == EPIPE) status.SetPayload(kReaderGone, absl::Cord());
      return status;
    }
  }
  return absl::OkStatus();
}

bool IsReaderGone(const absl::Status& status) { return status.GetPayload(kReaderGone).has_value(); }

absl::Status LineWriter::WriteText(absl::string_view lines) {
  absl::StrAppend(&buffer_, lines);
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status LineWriter::Flush() {
  absl::Status status = file_ == nullptr ? WriteStdout(buffer_)
                                         : WriteAll(*file_, path_, buffer_.data(), buffer_.size());
  buffer_.clear();
  return status;
}

absl::Status CheckOutput(const std::string& out, bool force) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(out, ignored);  // a link to nothing exists
  if (!std::filesystem::exists(status)) {
    if (IsDirectory(DirectoryOf(out))) return absl::OkStatus();
    return Error(
        Exit::kCannotCreate, QuotePath(out), ": no directory ", QuotePath(DirectoryOf(out)));
  }
  if (!std::filesystem::is_regular_file(out, ignored))
    return Error(Exit::kCannotCreate, QuotePath(out), ": is not a file that can be replaced");
  if (force) return absl::OkStatus();
  return Error(Exit::kCannotCreate, QuotePath(out), ": exists already (--force replaces it)");
}

absl::Status CheckCanCreate(std::string folder) {
  while (!PathExists(folder)) folder = DirectoryOf(folder);
  if (IsDirectory(folder) && ::access(folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return Error(
      Exit::kCannotCreate, QuotePath(folder), ": expected a folder that can be written to");
}

absl::Status WriteOutput(
    const std::string& out, bool force, absl::FunctionRef<absl::Status(LineWriter&)> write) {
  if (out.empty() || out == "-") {
    LineWriter writer;
    absl::Status status = write(writer);
    RETURN_IF_ERROR(writer.Flush());
    return status;
  }
  RETURN_IF_ERROR(CheckOutput(out, force));
  StopOnSignals();  // removes the temporary file
  const auto create = [&](const std::string& temporary) {
    return CreateFile(temporary, [&](const Fd& fd) {
      LineWriter writer(&fd, out);
      RETURN_IF_ERROR(write(writer));
      return writer.Flush();
    });
  };
  return ReplaceFile(out, create, force);
}

const std::atomic<bool>* StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    std::signal(signal, OnSignal);  // also if ignored, as SIGINT in background jobs of a shell
  struct sigaction before;
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    std::signal(SIGHUP, OnSignal);
  return &stop;
}

absl::Status CheckSignals() {
  return stop ? Error(Exit::kInterrupted, "stopped; nothing is written") : absl::OkStatus();
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::Create() {
  const char* base = std::getenv("TMPDIR");
  TemporaryFolder folder;
  folder.path_ = JoinPath(base != nullptr && *base != '\0' ? base : P_tmpdir, "cloze-XXXXXX");
  if (::mkdtemp(folder.path_.data()) != nullptr) return folder;
  return Error(Exit::kCannotCreate, QuotePath(folder.path_), ": cannot create a temporary folder");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace cloze
