// One code point at a time out of bytes that may not be valid UTF-8.
#ifndef CLOZE_CORE_BASE_UTF8_H_
#define CLOZE_CORE_BASE_UTF8_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace cloze {

// Length of the valid UTF-8 sequence at the front of `s` (not empty), its code point in *cp; 0 when
// there is none: overlong forms, surrogates and values beyond U+10FFFF are not valid.
int DecodeUtf8(absl::string_view s, uint32_t* cp);

// Is all of `s` well-formed UTF-8?
bool IsUtf8(absl::string_view s);

// Is it a control character, or one that turns the direction of text? Terminals obey them, so
// output shows them in another form.
bool MustEscape(uint32_t cp);

// What a file that begins with `bytes` is when it is no UTF-8 text: "gzip data", "UTF-16 text" ...;
// "" when it may be.
absl::string_view OtherFormat(absl::string_view bytes);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_UTF8_H_
