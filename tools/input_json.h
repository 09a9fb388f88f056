// One line of JSON input.
#ifndef CLOZE_TOOLS_INPUT_JSON_H_
#define CLOZE_TOOLS_INPUT_JSON_H_

#include <string>

#include "core/base/status.h"
#include "tools/input.h"

namespace cloze {

// Parses an object into *record, except `line`. Its kind is the first that is given of text, words
// and ids. Unknown members are skipped. kData without the place.
absl::Status ParseInputJson(const std::string& json, InputRecord* record);

}  // namespace cloze

#endif  // CLOZE_TOOLS_INPUT_JSON_H_
