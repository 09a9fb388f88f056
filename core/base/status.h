// Errors as values: absl::Status with an exit code, and the macros that pass them on.
#ifndef CLOZE_CORE_BASE_STATUS_H_
#define CLOZE_CORE_BASE_STATUS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cloze {

// What the program's exit status says; documented in the README.
enum class Exit : int {
  kOk = 0,
  kUsage = 2,          // unknown command or flag
  kData = 65,          // the content of a file is wrong
  kNoInput = 66,       // a file is missing or unreadable
  kInternal = 70,      // our own bug, or numbers that went wrong for good
  kCannotCreate = 73,  // an output exists, is locked or cannot be made
  kIo = 74,            // reading or writing failed (disk full, I/O error)
  kInterrupted = 75,   // stopped by a signal; can be resumed
  kMismatch = 76,      // checkpoint, model and spec do not fit together
  kLimit = 77,         // out of memory or over a limit
  kSpec = 78,          // the spec is wrong
};

// An error that ends the program with `exit` if nobody handles it. `message` names file, line and
// field where there are any, what was expected, and a hint.
absl::Status Error(Exit exit, absl::string_view message);

// The exit code that `Error` put into `status`; kInternal for foreign errors, kOk for ok.
Exit ExitOf(const absl::Status& status);

// `status` with "context: " before its message; keeps the exit code. Ok stays ok.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// `text` for a message: at most max_bytes, control characters, escapes and bidirectional overrides
// as \u{...}, invalid UTF-8 as \xNN.
std::string Quote(absl::string_view text, size_t max_bytes = 80);

// The same for a path, which is never cut: its end says most.
std::string QuotePath(absl::string_view path);

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace internal

}  // namespace cloze

// Ends the program when `condition` is false. Only for our own bugs, never for what a user can
// cause.
#define CLOZE_CHECK(condition)        \
  ((condition) ? static_cast<void>(0) \
               : ::cloze::internal::CheckFailed(__FILE__, __LINE__, #condition))

#define CLOZE_CONCAT_INNER(a, b) a##b
#define CLOZE_CONCAT(a, b) CLOZE_CONCAT_INNER(a, b)

// Returns from the function when `expression` is not ok.
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// lhs = value of the StatusOr `expression`, or returns its error.
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_INNER(CLOZE_CONCAT(status_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_INNER(temporary, lhs, expression) \
  auto temporary = (expression);                           \
  if (!temporary.ok()) return temporary.status();          \
  lhs = *std::move(temporary)

#endif  // CLOZE_CORE_BASE_STATUS_H_
