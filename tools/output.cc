// Output on standard output; see output.h.
#include "tools/output.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "core/base/number.h"
#include "core/base/utf8.h"

namespace cloze {
namespace {

constexpr size_t kFlushBytes = 1 << 16;
constexpr char kReaderGone[] = "cloze/reader-gone";

void AppendEscaped(uint32_t c, std::string* out) {
  switch (c) {
    case '"': out->append("\\\""); return;
    case '\\': out->append("\\\\"); return;
    case '\n': out->append("\\n"); return;
    case '\r': out->append("\\r"); return;
    case '\t': out->append("\\t"); return;
    default: absl::StrAppendFormat(out, "\\u%04x", c);
  }
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    uint32_t c = 0;
    const int n = DecodeUtf8(text, &c);
    if (n == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (MustEscape(c) || c == '"' || c == '\\') {
      AppendEscaped(c, &out);
    } else {
      out.append(text.data(), n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out + "\"";
}

std::string JsonNumber(float value) { return std::isfinite(value) ? Shortest(value) : "null"; }
std::string JsonNumber(double value) { return std::isfinite(value) ? Shortest(value) : "null"; }

absl::Status WriteStdout(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(n);
    } else if (errno != EINTR) {
      absl::Status status =
          Error(Exit::kIo, absl::StrCat("standard output: cannot write: ", std::strerror(errno)));
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
