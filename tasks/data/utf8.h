// Counting what is not UTF-8.
#ifndef CLOZE_TASKS_DATA_UTF8_H_
#define CLOZE_TASKS_DATA_UTF8_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace cloze {

// Bytes of `text` that belong to no well-formed UTF-8 sequence.
int64_t CountInvalidUtf8(absl::string_view text);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_UTF8_H_
