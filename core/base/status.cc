#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/text.h"

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

}  // namespace

absl::Status internal::MakeError(Exit exit, absl::string_view message) {
  absl::Status status(CodeOf(exit), message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(exit))));
  return status;
}

Exit ExitOf(const absl::Status& status) {
  if (status.ok()) return Exit::kOk;
  int exit = 0;
  const auto payload = status.GetPayload(kPayload);
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &exit)
             ? static_cast<Exit>(exit)
             : Exit::kInternal;
}

std::string Quote(absl::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    std::string piece(text.substr(at, c.valid ? c.size : 1));
    if (!c.valid) {
      piece = absl::StrFormat("\\x%02X", static_cast<unsigned char>(piece[0]));
    } else if (MustEscape(c.value)) {
      piece = absl::StrFormat("\\u{%X}", static_cast<uint32_t>(c.value));
    }
    if (out.size() + piece.size() > max_bytes) return out + "...";
    out += piece;
    at += c.valid ? c.size : 1;
  }
  return out;
}

std::string QuotePath(absl::string_view path) { return Quote(path, absl::string_view::npos - 8); }

namespace internal {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, condition);
  std::abort();
}

}  // namespace internal
}  // namespace cloze
