#include "core/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// The format of a file shows in its first line, or in this many bytes of it.
constexpr size_t kSignatureBytes = 256;

// Returns kNoInput if `error`, the errno of an open or stat, says that a file is missing or may not
// be read; kIo for errors of the system, which may pass, such as too many open files.
Exit ExitOfOpen(int error) {
  constexpr int kOfTheFile[] = {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, EISDIR, ENXIO,
      ENODEV, EINVAL, EOVERFLOW};
  return absl::c_linear_search(kOfTheFile, error) ? Exit::kNoInput : Exit::kIo;
}

class Lines : public TextSource {
 public:
  explicit Lines(LineReader reader) : reader_(std::move(reader)) {}

  absl::StatusOr<bool> Next(std::string* text) override { return reader_.Next(text); }
  absl::string_view end() const override { return reader_.line_end(); }
  int64_t line() const override { return reader_.line_number(); }
  int64_t position() const override { return reader_.stored_position(); }

 private:
  LineReader reader_;
};

}  // namespace

absl::Status Errno(Exit exit, absl::string_view what, absl::string_view path) {
  return Error(exit, QuotePath(path), ": ", what, ": ", std::strerror(errno));
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status Fd::Close(absl::string_view path) {
  const int fd = std::exchange(fd_, -1);
  return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? Errno(Exit::kIo, "cannot close", path)
                                                       : absl::OkStatus();
}

absl::StatusOr<Fd> OpenForRead(const std::string& path) {
  // Non-blocking, because opening a named pipe would block.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return Errno(ExitOfOpen(errno), "cannot open", path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno(Exit::kIo, "cannot stat", path);
  if (!S_ISREG(info.st_mode)) return Error(Exit::kNoInput, QuotePath(path), ": not a regular file");
  return fd;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Errno(ExitOfOpen(errno), "cannot open", path);
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

absl::Status ForBlocks(const Fd& fd, const std::string& path, int64_t size,
    absl::FunctionRef<absl::Status(const char* data, int64_t size)> visit) {
  std::vector<char> block(std::min<int64_t>(size, 1 << 20));
  for (int64_t at = 0; at < size; at += block.size()) {
    const int64_t n = std::min<int64_t>(block.size(), size - at);
    RETURN_IF_ERROR(ReadAt(fd, path, at, block.data(), n));
    RETURN_IF_ERROR(visit(block.data(), n));
  }
  return absl::OkStatus();
}

bool PathExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

absl::Status NoSuchModel(const std::string& path) {
  const auto names = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("-_./", c); };
  const bool hub = std::count(path.begin(), path.end(), '/') < 2 && !path.empty() &&
                   absl::ascii_isalnum(path[0]) && std::all_of(path.begin(), path.end(), names) &&
                   !absl::EndsWith(path, ".txt") && !absl::EndsWith(path, ".json");
  return Error(Exit::kNoInput, QuotePath(path), ": no such file or folder",
      hub ? " (models are not downloaded by name; tools/fetch-model.sh fetches one from a hub, see "
            "docs/models.md)"
          : "");
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Not std::filesystem::directory_iterator, which terminates the program if memory is short.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& directory) {
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  const std::unique_ptr<DIR, Close> open(::opendir(directory.c_str()));
  if (open == nullptr) return Errno(ExitOfOpen(errno), "cannot open the directory", directory);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(open.get())) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return Errno(Exit::kIo, "cannot read the directory", directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty() || absl::StartsWith(b, "/")) return std::string(b);
  return absl::StrCat(a, a.back() == '/' ? "" : "/", b);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string RelativePath(const std::string& path, const std::string& from) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, from, error);
  return error || relative.empty() ? AbsolutePath(path) : relative.string();
}

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string BaseName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

absl::StatusOr<LineReader> LineReader::Open(
    const std::string& path, int64_t max_line_bytes, std::optional<Charset> data) {
  LineReader reader;
  reader.path_ = path == "-" ? "standard input" : path;
  reader.max_line_ = max_line_bytes;
  if (data) reader.decoder_.emplace(*data);
  ASSIGN_OR_RETURN(reader.input_, InputFile::Open(path));
  return reader;
}

absl::Status LineReader::Fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  std::string bytes;
  const bool plain = !decoder_ || decoder_->passes();
  ASSIGN_OR_RETURN(const bool more, input_->Read(plain ? &buffer_ : &bytes));
  end_ = !more;
  if (!plain) decoder_->Append(bytes, end_, &buffer_);
  return absl::OkStatus();
}

absl::Status LineReader::CheckSignature() {
  absl::string_view other = OtherFormat(buffer_);
  // UTF-16 without a mark, of a European language, has a zero in every second byte.
  const absl::string_view start =
      absl::string_view(buffer_).substr(0, std::min(buffer_.find('\n'), kSignatureBytes - 1) + 1);
  size_t zeros[] = {0, 0};  // at even and odd places
  for (size_t i = 0; i < start.size(); ++i) zeros[i % 2] += start[i] == '\0';
  if (other.empty() && start.size() >= 3 && (zeros[0] + zeros[1]) * 3 >= start.size())
    other = std::min(zeros[0], zeros[1]) * 16 < start.size() ? "UTF-16 text" : "binary data";
  if (!other.empty()) {
    const std::string remedy = RemedyOfFormat(other);
    return Error(Exit::kData, QuotePath(path_), ": is ", other, ": expected UTF-8 text (",
        !remedy.empty()          ? remedy
        : other == "binary data" ? "is it the right file?"
                                 : "convert or unpack it first",
        ")");
  }
  has_bom_ = absl::StartsWith(buffer_, kUtf8Mark);
  if (has_bom_) begin_ = position_ = kUtf8Mark.size();
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::Ready() {
  while (!end_ && buffer_.find('\n', begin_) == std::string::npos &&
         buffer_.size() - begin_ <= max_line_) {
    if (!input_->Ready()) return false;
    RETURN_IF_ERROR(Fill());
  }
  return true;
}

absl::StatusOr<bool> LineReader::Take(std::string* line, size_t size, absl::string_view line_end) {
  line->assign(buffer_, begin_, size - line_end.size());
  line_end_ = line_end;
  begin_ += size;
  position_ += size;
  if (decoder_) {
    decoder_->Convert(line_number_, line);
    const absl::Status good = decoder_->Check(path_, line_number_ - (size == 0), size == 0);
    refused_ = !good.ok();
    RETURN_IF_ERROR(good);
  }
  return size > 0;
}

absl::StatusOr<bool> LineReader::Next(std::string* line) {
  while (!started_ && buffer_.size() < kSignatureBytes && buffer_.find('\n') == std::string::npos &&
         !end_)
    RETURN_IF_ERROR(Fill());
  if (!started_) RETURN_IF_ERROR(CheckSignature());
  started_ = true;
  if (!std::exchange(continued_, false)) ++line_number_;
  for (size_t searched = 0;;) {
    const size_t newline = buffer_.find('\n', begin_ + searched), size = buffer_.size() - begin_;
    if (newline != std::string::npos && newline - begin_ <= max_line_) {
      const bool cr = newline > begin_ && buffer_[newline - 1] == '\r';
      return Take(line, newline + 1 - begin_, cr ? "\r\n" : "\n");
    }
    if (size > max_line_) {
      continued_ = true;
      const size_t cut = Utf8Floor(absl::string_view(buffer_).substr(begin_), max_line_);
      return Take(line, std::max<size_t>(cut, 1), "");
    }
    if (end_) return Take(line, size, size > 0 && buffer_.back() == '\r' ? "\r" : "");
    searched = size;
    RETURN_IF_ERROR(Fill());
  }
}

absl::StatusOr<std::unique_ptr<TextSource>> OpenLines(const std::string& path) {
  return OpenEncodedLines(path, Charset::kUtf8);
}

absl::StatusOr<std::unique_ptr<TextSource>> OpenEncodedLines(
    const std::string& path, Charset fallback) {
  ASSIGN_OR_RETURN(
      LineReader reader, LineReader::Open(path, LineReader::kDefaultMaxLine, fallback));
  return std::make_unique<Lines>(std::move(reader));
}

}  // namespace cloze
