#include "core/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/base/create.h"
#include "core/base/utf8.h"

namespace cloze {

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status Fd::Close(absl::string_view path) {
  const int fd = fd_;
  fd_ = -1;
  return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? Errno(Exit::kIo, "cannot close", path)
                                                       : absl::OkStatus();
}

absl::StatusOr<Fd> OpenForRead(const std::string& path) {
  Fd fd(::open(path.c_str(),
      O_RDONLY | O_CLOEXEC |
          O_NONBLOCK));  // non-blocking, because opening a named pipe would block
  if (!fd.ok()) return Errno(Exit::kNoInput, "cannot open", path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno(Exit::kIo, "cannot stat", path);
  if (!S_ISREG(info.st_mode)) return Error(Exit::kNoInput, QuotePath(path), ": not a regular file");
  return fd;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Errno(Exit::kNoInput, "cannot open", path);
  if (!S_ISREG(info.st_mode)) return Error(Exit::kNoInput, QuotePath(path), ": not a regular file");
  return info.st_size;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(Fd fd, OpenForRead(path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno(Exit::kIo, "cannot stat", path);
  if (info.st_size > max_bytes) {
    return Error(
        Exit::kLimit, QuotePath(path), ": ", info.st_size, " bytes: expected at most ", max_bytes);
  }
  std::string content(info.st_size, '\0');
  RETURN_IF_ERROR(ReadAt(fd, path, 0, content.data(), info.st_size));
  return content;
}

absl::Status ReadAt(
    const Fd& fd, absl::string_view path, int64_t offset, void* data, int64_t size) {
  char* out = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::pread(fd.get(), out, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(Exit::kIo, "cannot read", path);
    if (n == 0)
      return Error(Exit::kData, QuotePath(path), ": ends at byte ", offset, ": expected ", size,
          " more bytes");
    out += n, offset += n, size -= n;
  }
  return absl::OkStatus();
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

absl::Status MakeDirectories(const std::string& path) {
  std::vector<std::string> made;
  return MakeDirectories(path, &made);
}

absl::Status WriteNewFile(const std::string& path, absl::string_view content) {
  return CreateFile(
      path, [&](const Fd& fd) { return WriteAll(fd, path, content.data(), content.size()); });
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  return ReplaceFile(
      path, [&](const std::string& temporary) { return WriteNewFile(temporary, content); });
}

absl::Status RenameNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return absl::OkStatus();
  if (errno == EEXIST) return Errno(Exit::kCannotCreate, "cannot rename to", to);
  const bool unsupported = errno == EINVAL || errno == ENOSYS;  // by this file system
  if (!unsupported) return Errno(Exit::kIo, "cannot rename to", to);
  if (PathExists(to)) return Error(Exit::kCannotCreate, QuotePath(to), ": exists already");
  return ::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus()
                                                 : Errno(Exit::kIo, "cannot rename to", to);
}

absl::Status SyncDirectory(const std::string& directory) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) return Errno(Exit::kIo, "cannot open the directory", directory);
  return ::fsync(fd.get()) == 0 ? absl::OkStatus()
                                : Errno(Exit::kIo, "cannot fsync the directory", directory);
}

bool PathExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& directory) {
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) return Errno(Exit::kNoInput, "cannot open the directory", directory);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const absl::Status status =
      errno == 0 ? absl::OkStatus() : Errno(Exit::kIo, "cannot read the directory", directory);
  ::closedir(dir);
  RETURN_IF_ERROR(status);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty() || (!b.empty() && b[0] == '/')) return std::string(b);
  return a.back() == '/' ? absl::StrCat(a, b) : absl::StrCat(a, "/", b);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

absl::StatusOr<LineReader> LineReader::Open(const std::string& path, int64_t max_line_bytes) {
  LineReader reader;
  reader.path_ = path == "-" ? "standard input" : path;
  reader.max_line_ = max_line_bytes;
  if (path == "-") {
    reader.fd_ = Fd(::dup(0));
  } else {
    ASSIGN_OR_RETURN(reader.fd_, OpenForRead(path));
  }
  return reader;
}

absl::Status LineReader::Fill() {
  if (begin_ > 0) buffer_.erase(0, begin_), begin_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + (1 << 18));
  ssize_t n;
  do {
    n = ::read(fd_.get(), buffer_.data() + old, buffer_.size() - old);
  } while (n < 0 && errno == EINTR);
  buffer_.resize(old + std::max<ssize_t>(n, 0));
  if (n < 0) return Errno(Exit::kIo, "cannot read", path_);
  end_ = n == 0;
  return absl::OkStatus();
}

absl::Status LineReader::CheckSignature() {
  if (const absl::string_view other = OtherFormat(buffer_); !other.empty()) {
    return Error(Exit::kData, QuotePath(path_), ": is ", other,
        ": expected UTF-8 text (convert or unpack it first)");
  }
  has_bom_ = buffer_.compare(0, 3, "\xEF\xBB\xBF") == 0;
  if (has_bom_) begin_ = position_ = 3;
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::Ready() {
  while (!end_ && buffer_.find('\n', begin_) == std::string::npos &&
         buffer_.size() - begin_ <= max_line_) {
    pollfd input = {fd_.get(), POLLIN, 0};
    if (::poll(&input, 1, 0) <= 0) return false;
    RETURN_IF_ERROR(Fill());
  }
  return true;
}

absl::StatusOr<bool> LineReader::Next(std::string* line) {
  while (!started_ && buffer_.size() < 8 && buffer_.find('\n') == std::string::npos && !end_)
    RETURN_IF_ERROR(Fill());
  if (!started_) RETURN_IF_ERROR(CheckSignature());
  started_ = true;
  if (!continued_) ++line_number_;
  size_t searched = begin_;
  while (true) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos && newline - begin_ <= max_line_) {
      const bool cr = newline > begin_ && buffer_[newline - 1] == '\r';
      line->assign(buffer_, begin_, newline - begin_ - cr);
      line_end_ = cr ? "\r\n" : "\n";
      position_ += newline + 1 - begin_;
      begin_ = newline + 1;
      continued_ = false;
      return true;
    }
    if (buffer_.size() - begin_ > max_line_) {
      size_t cut = max_line_;  // not inside a UTF-8 sequence
      for (int back = 0; back < 4 && cut > 1 && (buffer_[begin_ + cut] & 0xC0) == 0x80; ++back)
        --cut;
      line->assign(buffer_, begin_, cut);
      line_end_ = "";
      begin_ += cut, position_ += cut;
      continued_ = true;
      return true;
    }
    if (end_) {
      const bool any = begin_ < buffer_.size();
      line->assign(buffer_, begin_, std::string::npos);
      const bool cr = !line->empty() && line->back() == '\r';
      if (cr) line->pop_back();
      line_end_ = cr ? "\r" : "";
      position_ += buffer_.size() - begin_;
      buffer_.clear(), begin_ = 0, continued_ = false;
      return any;
    }
    const size_t unsearched = buffer_.size() - begin_;
    RETURN_IF_ERROR(Fill());
    searched = begin_ + unsearched;
  }
}

}  // namespace cloze
