// UTF-8 decoding and look-ups in the frozen tables; canonical decomposition comes from libutf8proc,
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

// Least and greatest second byte of a sequence that starts with `lead`, which is 0xC2 to 0xF4.
void SecondByteBounds(unsigned char lead, unsigned char* low, unsigned char* high) {
  *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
}

}  // namespace

CodePoint CodePointAt(absl::string_view text, size_t at) {
  const unsigned char lead = text[at];
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xC2 || lead > 0xF4) return {kReplacementCharacter, 1, false};
  const int32_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned char low, high;
  SecondByteBounds(lead, &low, &high);
  char32_t value = lead & (0x7F >> size);
  for (int32_t i = 1; i < size; ++i) {
    const unsigned char c = at + i < text.size() ? text[at + i] : 0;
    if (c < low || c > high) return {kReplacementCharacter, i, false};
    value = value << 6 | (c & 0x3F);
    low = 0x80, high = 0xBF;
  }
  return {value, size, true};
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return;
  }
  const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out->push_back(static_cast<char>((0xFF00 >> (tail + 1) & 0xFF) | (c >> (6 * tail))));
  for (int i = tail - 1; i >= 0; --i)
    out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F)));
}

int64_t CountCodePoints(absl::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); at += CodePointAt(text, at).size) ++count;
  return count;
}

bool IsRemoved(char32_t c) { return Contains(unicode_tables::kRemoved, c); }
bool IsSpace(char32_t c) { return Contains(unicode_tables::kSpaces, c); }
bool IsPunctuation(char32_t c) { return Contains(unicode_tables::kPunctuation, c); }
bool IsMark(char32_t c) { return Contains(unicode_tables::kMarks, c); }
bool IsChinese(char32_t c) { return Contains(unicode_tables::kChinese, c); }
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
