#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr int64_t kPart = 1 << 18;

}  // namespace

bool IsStream(const std::string& path) {
  struct stat info;
  if (path == "-") return true;
  return ::stat(path.c_str(), &info) == 0 &&
         (S_ISFIFO(info.st_mode) || (S_ISCHR(info.st_mode) && path == "/dev/stdin"));
}

absl::StatusOr<int64_t> InputSize(const std::string& path) {
  return IsStream(path) ? 0 : FileSize(path);
}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  InputFile file;
  file.path_ = path == "-" ? "standard input" : path;
  if (path == "-") {
    file.fd_ = Fd(::dup(0));
  } else if (IsStream(path)) {
    // Opening a pipe would wait for its writer and ignore signals; ReadStored waits instead.
    file.fd_ = Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.fd_.ok()) ::fcntl(file.fd_.get(), F_SETFL, O_RDONLY);
  } else {
    ASSIGN_OR_RETURN(file.fd_, OpenForRead(path));
  }
  if (!file.fd_.ok()) return Errno(Exit::kNoInput, "cannot open", path);
  return file;
}

bool InputFile::Ready() const {
  if (begin_ < stored_.size() || (unpacker_ != nullptr && unpacker_->full())) return true;
  pollfd input = {fd_.get(), POLLIN, 0};
  return end_ || ::poll(&input, 1, 0) > 0;
}

absl::Status InputFile::ReadStored() {
  stored_.erase(0, std::exchange(begin_, 0));
  const size_t old = stored_.size();
  stored_.resize(old + kPart);
  // Unlike read, poll ends at every signal that has a handler.
  pollfd input = {fd_.get(), POLLIN, 0};
  if (::poll(&input, 1, -1) < 0 && errno == EINTR) {
    stored_.resize(old);
    return Error(Exit::kInterrupted, "stopped while waiting for ", QuotePath(path_));
  }
  ssize_t n;
  do {
    n = ::read(fd_.get(), stored_.data() + old, kPart);
  } while (n < 0 && errno == EINTR);
  stored_.resize(old + std::max<ssize_t>(n, 0));
  if (n < 0) return Errno(Exit::kIo, "cannot read", path_);
  position_ += n;
  end_ = n == 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> InputFile::Read(std::string* out) {
  const bool full = unpacker_ != nullptr && unpacker_->full();
  if (!end_ && !full && (!decided_ || begin_ == stored_.size())) RETURN_IF_ERROR(ReadStored());
  if (!decided_ && !end_ && Unpacker::Undecided(stored_)) return true;
  if (!std::exchange(decided_, true)) unpacker_ = Unpacker::For(stored_);
  if (unpacker_ != nullptr) return ReadUnpacked(out);
  if (stored_.empty()) return false;
  out->append(stored_);
  stored_.clear();
  return true;
}

absl::StatusOr<bool> InputFile::ReadUnpacked(std::string* out) {
  const auto fail = [&](const auto&... problem) {
    return Error(Exit::kData, QuotePath(path_), ": ", unpacker_->name(), " data: ", problem...);
  };
  const absl::string_view left = absl::string_view(stored_).substr(begin_);
  if (left.empty() && end_ && !unpacker_->full()) {
    if (unpacker_->complete()) return false;
    return fail("truncated after ", position_, " bytes: expected a whole archive ",
        "(incomplete copy or download?)");
  }
  const int64_t taken = unpacker_->Unpack(left, kPart, out);
  if (taken < 0) {
    return fail(Quote(unpacker_->error()), ": expected a sound archive (test it with ",
        unpacker_->name(), " -t)");
  }
  begin_ += taken;
  return true;
}

absl::StatusOr<Charset> CharsetOfFile(const std::string& path, Charset fallback) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  std::string lines;
  for (bool first = true, more = true; more; first = false) {
    ASSIGN_OR_RETURN(more, file.Read(&lines));
    if (first && (absl::StartsWith(lines, "\xFF\xFE") || absl::StartsWith(lines, "\xFE\xFF")))
      return Charset::kUtf16;
    if (first && absl::StartsWith(lines, kUtf8Mark)) return Charset::kUtf8;
    if (fallback == Charset::kUtf16 && absl::StrContains(lines, '\0')) return fallback;
    const size_t high =
        absl::c_find_if(lines, [](char c) { return (c & 0x80) != 0; }) - lines.begin();
    const size_t begin = lines.rfind('\n', high) + 1, end = lines.find('\n', high);
    if (high < lines.size() && (end != lines.npos || !more)) {
      const absl::string_view line = absl::string_view(lines).substr(begin, end - begin);
      return IsUtf8(line) ? Charset::kUtf8 : fallback;
    }
    lines.erase(0, lines.rfind('\n') + 1);
  }
  return fallback == Charset::kUtf16 ? Charset::kUtf8 : fallback;
}

absl::StatusOr<std::string> ReadInput(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  std::string content;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, file.Read(&content));
    if (static_cast<int64_t>(content.size()) > max_bytes) {
      return Error(
          Exit::kLimit, QuotePath(path), ": too large: expected at most ", max_bytes, " bytes");
    }
    if (!more) return content;
  }
}

}  // namespace cloze
