#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace cloze {
namespace {

constexpr char kPayload[] = "cloze/exit";

absl::StatusCode CodeOf(Exit exit) {
  switch (exit) {
    case Exit::kOk: return absl::StatusCode::kOk;
    case Exit::kUsage:
    case Exit::kSpec:
    case Exit::kData: return absl::StatusCode::kInvalidArgument;
    case Exit::kNoInput: return absl::StatusCode::kNotFound;
    case Exit::kInternal: return absl::StatusCode::kInternal;
    case Exit::kCannotCreate: return absl::StatusCode::kAlreadyExists;
    case Exit::kIo: return absl::StatusCode::kUnavailable;
    case Exit::kInterrupted: return absl::StatusCode::kCancelled;
    case Exit::kMismatch: return absl::StatusCode::kFailedPrecondition;
    case Exit::kLimit: return absl::StatusCode::kResourceExhausted;
  }
  return absl::StatusCode::kInternal;
}

// Length of the valid UTF-8 sequence at the front of `s`, its code point in *cp; 0 when there is none.
int DecodeUtf8(absl::string_view s, uint32_t* cp) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char b = byte(0);
  if (b < 0x80) return *cp = b, 1;
  const int n = b >= 0xF0 && b < 0xF5 ? 4 : b >= 0xE0 && b < 0xF0 ? 3 : b >= 0xC2 && b < 0xE0 ? 2 : 0;
  if (n == 0 || s.size() < n) return 0;
  *cp = b & (0xFF >> (n + 1));
  for (int i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *cp = *cp << 6 | (byte(i) & 0x3F);
  }
  static constexpr uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  return *cp < kMin[n] || *cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000) ? 0 : n;
}

bool MustEscape(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || (cp >= 0x200E && cp <= 0x200F) || (cp >= 0x2028 && cp <= 0x202E) ||
         (cp >= 0x2066 && cp <= 0x2069);
}

}  // namespace

absl::Status Error(Exit exit, absl::string_view message) {
  absl::Status status(CodeOf(exit), message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(exit))));
  return status;
}

Exit ExitOf(const absl::Status& status) {
  if (status.ok()) return Exit::kOk;
  int exit = 0;
  const auto payload = status.GetPayload(kPayload);
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &exit) ? static_cast<Exit>(exit) : Exit::kInternal;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : Error(ExitOf(status), absl::StrCat(context, ": ", status.message()));
}

std::string Quote(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t cp = 0;
    const int n = DecodeUtf8(text, &cp);
    std::string piece;
    if (n == 0) {
      piece = absl::StrFormat("\\x%02X", static_cast<unsigned char>(text[0]));
    } else if (MustEscape(cp)) {
      piece = absl::StrFormat("\\u{%X}", cp);
    } else {
      piece = std::string(text.substr(0, n));
    }
    if (out.size() + piece.size() > 80) return out + "...";
    out += piece;
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

namespace internal {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, condition);
  std::abort();
}

}  // namespace internal
}  // namespace cloze
