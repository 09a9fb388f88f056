// Errors: absl::Status with an exit code, and macros that return them.
#ifndef CLOZE_CORE_BASE_STATUS_H_
#define CLOZE_CORE_BASE_STATUS_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cloze {

// Exit codes of the program; documented in `cloze --help`.
enum class Exit : int {
  kOk = 0,
  kUsage = 2,          // unknown command or flag
  kData = 65,          // the content of a file is wrong
  kNoInput = 66,       // a file is missing or unreadable
  kCpu = 69,           // this CPU lacks instructions that the program needs
  kInternal = 70,      // our bug, or training diverged
  kCannotCreate = 73,  // an output exists, is locked or cannot be created
  kIo = 74,            // reading or writing failed (disk full, I/O error)
  kInterrupted = 75,   // stopped by a signal; can be resumed
  kMismatch = 76,      // checkpoint, model and spec do not fit together, or a file is damaged
  kLimit = 77,         // out of memory or over a limit
  kSpec = 78,          // the spec is wrong
};

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
absl::Status MakeError(Exit exit, absl::string_view message);
}  // namespace internal

// Returns an error that ends the program with `exit` unless it is handled. `parts`, joined by
// absl::StrCat, have the form "where: problem: expected X (hint)".
template <typename... Parts>
absl::Status Error(Exit exit, const Parts&... parts) {
  return internal::MakeError(exit, absl::StrCat(parts...));
}

// Returns the exit code of `status`; kInternal for errors of other libraries, kOk for ok.
Exit ExitOf(const absl::Status& status);

// Returns `status` with `context`, joined by absl::StrCat, and ": " before its message. Keeps the
// exit code; returns an OK status unchanged.
template <typename... Parts>
absl::Status Annotate(const absl::Status& status, const Parts&... context) {
  if (status.ok()) return status;
  return Error(ExitOf(status), context..., ": ", status.message());
}

// Returns kInterrupted, "stopped while " and `doing`, if the user has asked to stop; `stop` may be
// null.
absl::Status CheckStopped(const std::atomic<bool>* stop, absl::string_view doing);

// Returns at most max_bytes of `text` for a message, with control characters and bidirectional
// overrides as \u{...} and invalid UTF-8 as \xNN.
std::string Quote(absl::string_view text, size_t max_bytes = 80);

// Does the same for a path, without truncation.
std::string QuotePath(absl::string_view path);

// Returns "standard input" for "-", else QuotePath(path).
std::string QuoteInput(absl::string_view path);

}  // namespace cloze

// Ends the program if `condition` is false. Only for our own bugs, never for user errors.
#define CLOZE_CHECK(condition)        \
  ((condition) ? static_cast<void>(0) \
               : ::cloze::internal::CheckFailed(__FILE__, __LINE__, #condition))

#define CLOZE_CONCAT_INNER(a, b) a##b
#define CLOZE_CONCAT(a, b) CLOZE_CONCAT_INNER(a, b)

// Returns from the function if `expression` is not ok.
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// Assigns the value of the StatusOr `expression` to lhs, or returns its error.
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_INNER(CLOZE_CONCAT(status_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_INNER(temporary, lhs, expression) \
  auto temporary = (expression);                           \
  if (!temporary.ok()) return temporary.status();          \
  lhs = *std::move(temporary)

#endif  // CLOZE_CORE_BASE_STATUS_H_
