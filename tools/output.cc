// Output on standard output; see output.h.
#include "tools/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"

namespace cloze {
namespace {

constexpr size_t kFlushBytes = 1 << 16;
constexpr char kReaderGone[] = "cloze/reader-gone";

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

absl::Status LineWriter::Write(absl::string_view line) {
  buffer_.append(line.data(), line.size());
  buffer_.push_back('\n');
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status LineWriter::Flush() {
  const absl::Status status = WriteStdout(buffer_);
  buffer_.clear();
  return status;
}

}  // namespace cloze
