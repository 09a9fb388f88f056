#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// The codes of our errors, above those of absl.
constexpr int kFirstCode = 1000;

}  // namespace

absl::Status internal::MakeError(Exit exit, absl::string_view message) {
  return absl::Status(static_cast<absl::StatusCode>(kFirstCode + static_cast<int>(exit)), message);
}

Exit ExitOf(const absl::Status& status) {
  if (status.ok()) return Exit::kOk;
  return status.raw_code() < kFirstCode ? Exit::kInternal
                                        : static_cast<Exit>(status.raw_code() - kFirstCode);
}

std::string Quote(absl::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    std::string piece(text.substr(at, c.valid ? c.size : 1));
    at += piece.size();
    if (!c.valid) {
      piece = absl::StrFormat("\\x%02X", static_cast<unsigned char>(piece[0]));
    } else if (MustEscape(c.value)) {
      piece = absl::StrFormat("\\u{%X}", static_cast<uint32_t>(c.value));
    }
    if (out.size() + piece.size() > max_bytes) return out + "...";
    out += piece;
  }
  return out;
}

std::string QuotePath(absl::string_view path) { return Quote(path, absl::string_view::npos); }

absl::Status CheckStopped(const std::atomic<bool>* stop, absl::string_view doing) {
  return stop != nullptr && stop->load() ? Error(Exit::kInterrupted, "stopped while ", doing)
                                         : absl::OkStatus();
}

std::string QuoteInput(absl::string_view path) {
  return path == "-" ? "standard input" : QuotePath(path);
}

void internal::CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, condition);
  std::abort();
}

}  // namespace cloze
