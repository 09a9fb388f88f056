// UTF-8 and the frozen character classes of BERT's normaliser.
#ifndef CLOZE_CORE_TEXT_UNICODE_UNICODE_H_
#define CLOZE_CORE_TEXT_UNICODE_UNICODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// A code point and its bytes. Bytes that are not UTF-8 count as U+FFFD: one for each maximal
// invalid sequence, as Python's errors="replace".
struct CodePoint {
  char32_t value = 0;
  int32_t size = 0;
  bool valid = true;
};

// The code point at text[at]; at < text.size().
CodePoint CodePointAt(absl::string_view text, size_t at);

// Appends the UTF-8 form of a code point up to U+10FFFF.
void AppendUtf8(char32_t code_point, std::string* out);

// How many code points `text` has, in the sense of CodePoint.
int64_t CountCodePoints(absl::string_view text);

// Classes as Hugging Face's tokenizers has them. They follow an old Unicode version and must not
// change with the system's libraries: ids would.
bool IsRemoved(char32_t c);      // control, format, private use, U+FFFD
bool IsSpace(char32_t c);        // white space
bool IsPunctuation(char32_t c);  // ASCII punctuation and category P*
bool IsMark(char32_t c);         // nonspacing mark (Mn)
bool IsChinese(char32_t c);      // ideographs that stand alone
bool IsLetter(char32_t c);       // category L*, of Unicode 16
bool IsNumber(char32_t c);       // category N*, of Unicode 16

// Canonical decomposition (NFD) of one code point; 1 to 8 code points.
std::u32string Decompose(char32_t c);

// Full lower-case mapping of one code point without regard to its neighbours.
std::u32string Lowercase(char32_t c);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_UNICODE_UNICODE_H_
