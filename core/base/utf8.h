// UTF-8: the only decoder.
#ifndef CLOZE_CORE_BASE_UTF8_H_
#define CLOZE_CORE_BASE_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// A code point and the number of its bytes. Bytes that are not well-formed UTF-8 (overlong forms,
// surrogates and values beyond U+10FFFF too) decode as one U+FFFD for each maximal invalid
// sequence, like Python's errors="replace".
struct CodePoint {
  char32_t value = 0;
  int32_t size = 0;
  bool valid = true;
};

namespace internal {
CodePoint DecodeMultibyte(absl::string_view text, size_t at);
}  // namespace internal

// Returns the code point at text[at]. Requires at < text.size().
inline CodePoint CodePointAt(absl::string_view text, size_t at) {
  const unsigned char lead = text[at];
  if (lead < 0x80) return {lead, 1, true};
  return internal::DecodeMultibyte(text, at);
}

// Appends the UTF-8 form of a code point up to U+10FFFF.
void AppendUtf8(char32_t code_point, std::string* out);

// Returns the number of code points; each maximal invalid sequence counts as one.
int64_t CountCodePoints(absl::string_view text);

// Returns the number of bytes that belong to no well-formed sequence.
int64_t CountInvalidUtf8(absl::string_view text);
inline bool IsUtf8(absl::string_view text) { return CountInvalidUtf8(text) == 0; }

// True for control characters and for those that change the direction of text or end a line.
// Terminals and browsers obey them, so output escapes or replaces them.
bool MustEscape(char32_t c);

// Returns the name of the format of a file that begins with `bytes` and is not UTF-8 text ("gzip
// data", "UTF-16 text" ...); else "".
absl::string_view OtherFormat(absl::string_view bytes);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_UTF8_H_
