// JSON from files of others: depth bounded, duplicate members refused, errors as values.
#ifndef CLOZE_CORE_TENSOR_JSON_H_
#define CLOZE_CORE_TENSOR_JSON_H_

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace cloze {

// The object that `text` is. kData, with `path` and where there is one the line, when it is not
// JSON, not an object, nested deeper than 64, or has a member twice. A byte order mark is allowed.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view path);

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_JSON_H_
