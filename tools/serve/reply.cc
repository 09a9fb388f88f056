#include "tools/serve/routes.h"

#include "core/base/json.h"

namespace cloze {
namespace {

constexpr int kFirstRefusal = 2000;  // above the codes of Error

struct Form {
  int status;
  const char *name, *openai, *code;  // in error_type, type and code
};
constexpr Form kForms[] = {
    {400, "Empty", "invalid_request_error", "empty"},
    {400, "Syntax", "invalid_request_error", "invalid_json"},
    {401, "Unauthorized", "invalid_request_error", "invalid_api_key"},
    {404, "NotFound", "invalid_request_error", "not_found"},
    {405, "Method", "invalid_request_error", "method_not_allowed"},
    {413, "Body", "invalid_request_error", "body_too_large"},
    {429, "Overloaded", "rate_limit_error", "overloaded"},
    {503, "Unhealthy", "server_error", "unavailable"},
};
constexpr Form kValidation = {422, "Validation", "invalid_request_error", "invalid_value"};
constexpr Form kBackend = {424, "Backend", "server_error", "backend"};

const Form& FormOf(const absl::Status& status) {
  if (status.raw_code() >= kFirstRefusal) return kForms[status.raw_code() - kFirstRefusal];
  const Exit exit = ExitOf(status);
  return exit == Exit::kData || exit == Exit::kUsage ? kValidation : kBackend;
}

}  // namespace

absl::Status MakeRefusal(Refusal refusal, absl::string_view message) {
  const int code = kFirstRefusal + static_cast<int>(refusal);
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

Reply ReplyOf(const absl::Status& status, bool openai) {
  const Form& form = FormOf(status);
  const std::string message(status.message());
  OrderedJson body = {{"error", message}, {"error_type", form.name}};
  if (openai) {
    // Messages begin with the member of the body that is wrong.
    const std::string member = message.substr(0, message.find(':'));
    const bool names = member.size() < message.size() && member.find(' ') == member.npos;
    body = {{"error",
        {{"message", message}, {"type", form.openai},
            {"param", names ? OrderedJson(member) : OrderedJson()}, {"code", form.code}}}};
  }
  return {form.status, ToJsonLine(body), "application/json", form.name};
}

}  // namespace cloze
