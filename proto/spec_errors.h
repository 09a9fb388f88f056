// Collects the errors of a spec, for its checks in spec_verify.cc and spec_verify_tasks.cc.
#ifndef CLOZE_PROTO_SPEC_ERRORS_H_
#define CLOZE_PROTO_SPEC_ERRORS_H_

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "proto/spec.h"

namespace cloze {

inline constexpr char kNeedsValidation[] =
    " needs validation data: expected validation.files or validation.share";

// Collects the errors of a spec.
class SpecErrors {
 public:
  explicit SpecErrors(const LoadedSpec& loaded) : loaded_(loaded) {}

  // Adds an error at `field`, whose text is the concatenation of `message`, if `wrong`.
  template <typename... Parts>
  void AddIf(bool wrong, const std::string& field, const Parts&... message) {
    if (!wrong) return;
    const absl::Status error = SpecError(loaded_, field, absl::StrCat(message...));
    errors_.push_back(std::string(error.message()));
  }

  absl::Status ToStatus() {
    if (errors_.empty()) return absl::OkStatus();
    constexpr size_t kMaxErrors = 50;
    if (errors_.size() > kMaxErrors) errors_.resize(kMaxErrors), errors_.push_back("and more");
    return Error(Exit::kSpec, absl::StrJoin(errors_, "\n"));
  }

 private:
  const LoadedSpec& loaded_;
  std::vector<std::string> errors_;
};

// Adds the errors of the task, and of fields that depend on it.
void CheckTask(const TaskSpec& spec, SpecErrors* errors);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_ERRORS_H_
