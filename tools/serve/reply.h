// The reply to a request, and the reasons to refuse one.
#ifndef CLOZE_TOOLS_SERVE_REPLY_H_
#define CLOZE_TOOLS_SERVE_REPLY_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace cloze {

struct Reply {
  int status = 200;  // of HTTP
  std::string body;
  const char* type = "application/json";
  const char* error = "";  // the reason of a refusal
};

// Reasons beside the errors of the tree: kData and kUsage refuse the content of a request (422),
// all others mean that the model failed (424).
enum class Refusal { kEmpty, kSyntax, kKey, kPath, kMethod, kBody, kTooMany, kUnavailable };

absl::Status MakeRefusal(Refusal refusal, absl::string_view message);
// Returns an error for ReplyOf. `parts`, joined by absl::StrCat, have the form of Error.
template <typename... Parts>
absl::Status Refuse(Refusal refusal, const Parts&... parts) {
  return MakeRefusal(refusal, absl::StrCat(parts...));
}

// Returns the reply for an error: {"error", "error_type"} as text-embeddings-inference writes it
// or, with `openai`, {"error": {"message", "type", "param", "code"}}.
Reply ReplyOf(const absl::Status& status, bool openai);

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_REPLY_H_
