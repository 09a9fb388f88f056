// The frozen character classes of BERT's normalizer.
#ifndef CLOZE_CORE_TEXT_UNICODE_UNICODE_H_
#define CLOZE_CORE_TEXT_UNICODE_UNICODE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/text.h"

namespace cloze {

// Character classes of Hugging Face's tokenizers. They are frozen: ids must not change with the
// Unicode version of a system library.
bool IsRemoved(char32_t c);      // control, format, private use, U+FFFD
bool IsSpace(char32_t c);        // white space
bool IsPunctuation(char32_t c);  // ASCII punctuation and category P*
bool IsMark(char32_t c);         // nonspacing mark (Mn)
bool IsCombining(char32_t c);    // category M*, as StripAccents knows it
bool IsWord(char32_t c);         // \w of a regular expression: letter, mark, digit, connector
bool IsChinese(char32_t c);      // ideographs that stand alone
bool IsUnspaced(char32_t c);     // of a script without spaces between words: Han, kana, Thai ...
bool IsLetter(char32_t c);       // category L*, of Unicode 16
bool IsNumber(char32_t c);       // category N*, of Unicode 16

// Returns the code points of a text. Invalid UTF-8 becomes U+FFFD.
std::u32string CodePoints(absl::string_view text);

// Returns the canonical decomposition (NFD) of a code point or, with `compat`, that of NFKD: 1 to
// 32 code points.
std::u32string Decompose(char32_t c, bool compat = false);
// Returns the canonical combining class; 0 for starters.
int CombiningClass(char32_t c);
// Returns the composition of two code points in NFC, or 0.
char32_t Compose(char32_t a, char32_t b);

// Returns the full lower-case mapping of a code point, regardless of its neighbours.
std::u32string Lowercase(char32_t c);

// Returns the text in small letters as Python's str.lower() does: Lowercase of each code point, but
// a capital sigma that ends a word becomes a final sigma (the condition Final_Sigma of Unicode).
// Invalid UTF-8 becomes U+FFFD.
std::u32string PythonLower(absl::string_view text);

// Returns true for the characters at which Python's str.split() splits.
bool IsPythonSpace(char32_t c);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_UNICODE_UNICODE_H_
