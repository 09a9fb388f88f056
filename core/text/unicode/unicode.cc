// Look-ups in the frozen tables; canonical decomposition comes from libutf8proc,
// where it is stable by Unicode's policy.
#include "core/text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "core/text/unicode/letter_tables.h"
#include "core/text/unicode/unicode_tables.h"

namespace cloze {
namespace {

template <size_t N>
bool Contains(const unicode_tables::Range (&ranges)[N], char32_t c) {
  const auto* end = std::end(ranges);
  const auto* at = std::lower_bound(std::begin(ranges), end, c,
      [](const unicode_tables::Range& range, char32_t x) { return range.last < x; });
  return at != end && at->first <= c;
}

}  // namespace

bool IsRemoved(char32_t c) { return Contains(unicode_tables::kRemoved, c); }
bool IsSpace(char32_t c) { return Contains(unicode_tables::kSpaces, c); }
bool IsPunctuation(char32_t c) { return Contains(unicode_tables::kPunctuation, c); }
bool IsMark(char32_t c) { return Contains(unicode_tables::kMarks, c); }
bool IsChinese(char32_t c) { return Contains(unicode_tables::kChinese, c); }
bool IsUnspaced(char32_t c) {
  static constexpr unicode_tables::Range kScripts[] = {{0x0E00, 0x0EFF},        // Thai, Lao
      {0x0F00, 0x109F},                                                         // Tibetan, Myanmar
      {0x1780, 0x17FF},                                                         // Khmer
      {0x3005, 0x3007}, {0x3040, 0x30FF}, {0x31F0, 0x31FF}, {0xFF66, 0xFF9F}};  // kana
  return c >= 0x0E00 && (Contains(kScripts, c) || IsChinese(c));
}
bool IsLetter(char32_t c) { return Contains(unicode_tables::kLetters, c); }
bool IsNumber(char32_t c) { return Contains(unicode_tables::kNumbers, c); }

std::u32string Decompose(char32_t c) {
  utf8proc_int32_t buffer[8];
  int boundary = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), buffer, std::size(buffer), UTF8PROC_DECOMPOSE, &boundary);
  if (Contains(unicode_tables::kNotDecomposed, c) || n <= 0 ||
      n > static_cast<utf8proc_ssize_t>(std::size(buffer)))
    return std::u32string(1, c);
  return std::u32string(buffer, buffer + n);
}

std::u32string Lowercase(char32_t c) {
  if (c == 0x130) return U"i\u0307";  // the only code point whose lower case is longer
  for (const auto& range : unicode_tables::kLowercase) {
    if (c >= range.first && c <= range.last && (c - range.first) % range.step == 0)
      return std::u32string(1, c + range.delta);
  }
  return std::u32string(
      1, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace cloze
