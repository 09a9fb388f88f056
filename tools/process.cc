#include "tools/process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "tasks/console/screen.h"

namespace cloze {
namespace {

constexpr size_t kFlushBytes = 1 << 16;
constexpr char kReaderGone[] = "cloze/reader-gone";

// Signals within this time after the first one are ignored: `timeout` and mpirun send a signal to a
// process and to its group.
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

constexpr absl::string_view kTemporary = "cloze.tmp-";

// Returns the extension of a file's name in lower case, without the dot; "" if there is none.
std::string ExtensionOf(const std::string& path) {
  const std::string name = BaseName(path);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? "" : absl::AsciiStrToLower(name.substr(dot + 1));
}

bool IsTemporaryFolder(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kTemporary)) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '-');
  return parts.size() == 2 && !parts[0].empty() && parts[1].size() == 8 &&
         absl::c_all_of(parts[0], absl::ascii_isdigit) &&
         absl::c_all_of(parts[1], absl::ascii_isxdigit);
}

// Opens a folder of this user. Follows no link, which somebody else may have put there.
Fd OpenOwnFolder(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  return fd.ok() && ::fstat(fd.get(), &info) == 0 && info.st_uid == ::geteuid() ? std::move(fd)
                                                                                : Fd();
}

// Removes the temporary folders in `base` that no process has locked.
void RemoveTemporaryFolders(const std::string& base) {
  const auto names = ListDirectory(base);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!IsTemporaryFolder(name)) continue;
    const Fd fd = OpenOwnFolder(JoinPath(base, name));
    if (!fd.ok() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(JoinPath(base, name), ignored);
  }
}

}  // namespace

absl::Status WriteTables(absl::string_view tables) {
  while (!tables.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, tables.data(), tables.size());
    if (n >= 0) {
      tables.remove_prefix(n);
    } else if (errno != EINTR) {
      absl::Status status =
          Error(Exit::kIo, "standard output: cannot write: ", std::strerror(errno));
      if (errno == EPIPE) status.SetPayload(kReaderGone, absl::Cord());
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status WriteStdout(absl::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? WriteTables(ForTerminal(text)) : WriteTables(text);
}

bool IsReaderGone(const absl::Status& status) { return status.GetPayload(kReaderGone).has_value(); }

absl::Status LineWriter::WriteText(absl::string_view lines) {
  absl::StrAppend(&buffer_, lines);
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status LineWriter::WriteTables(absl::string_view tables) {
  RETURN_IF_ERROR(Flush());
  return file_ == nullptr ? cloze::WriteTables(tables)
                          : WriteAll(*file_, path_, tables.data(), tables.size());
}

absl::Status LineWriter::Flush() {
  absl::Status status = file_ == nullptr ? WriteStdout(buffer_)
                                         : WriteAll(*file_, path_, buffer_.data(), buffer_.size());
  buffer_.clear();
  return status;
}

absl::Status CheckExtension(
    const std::string& out, const std::vector<std::string>& known, absl::string_view hint) {
  const std::string extension = ExtensionOf(out);
  if (extension.empty() || out == "-" || absl::c_linear_search(known, extension))
    return absl::OkStatus();
  std::vector<std::string> names;
  for (const std::string& name : known) names.push_back("." + name);
  return Error(Exit::kUsage, "--out ", QuotePath(out), ": expected a name that ends in ",
      ListOr(names), hint);
}

absl::Status CheckFolderName(const std::string& out) {
  constexpr absl::string_view kFiles[] = {
      "bin", "csv", "html", "json", "jsonl", "npy", "onnx", "safetensors", "tsv", "txt", "vec"};
  if (!absl::c_linear_search(kFiles, ExtensionOf(out))) return absl::OkStatus();
  return Error(
      Exit::kUsage, "--out ", QuotePath(out), ": is the name of a file: expected that of a folder");
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
  return Error(Exit::kCannotCreate, QuotePath(out), ": already exists (use --force to replace it)");
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

absl::StatusOr<ScratchFolder> ScratchFolder::Create() {
  constexpr int kTries = 100;
  const char* variable = std::getenv("TMPDIR");
  const std::string base = variable != nullptr && *variable != '\0' ? variable : P_tmpdir;
  RemoveTemporaryFolders(base);
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  for (int i = 0; i < kTries; ++i) {
    ScratchFolder folder;
    const auto number = absl::Hex(static_cast<uint32_t>(now + i), absl::kZeroPad8);
    const std::string path = JoinPath(base, absl::StrCat(kTemporary, ::getpid(), "-", number));
    if (::mkdir(path.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return Errno(ExitOfCreate(errno), "cannot create a temporary folder", path);
    }
    folder.path_ = path;
    folder.lock_ = OpenOwnFolder(path);
    // Without locks nobody removes folders. Before this lock another process may have done so.
    const bool locked = folder.lock_.ok() && ::flock(folder.lock_.get(), LOCK_EX) == 0;
    if (!locked || PathExists(path)) return folder;
  }
  return Error(Exit::kCannotCreate, QuotePath(base), ": cannot create a temporary folder in it");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace cloze
