// Look-ups in the frozen tables. Normal forms come from libutf8proc, where they are stable by
// Unicode's policy, except for code points that the reference does not know.
#include "core/text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "core/text/unicode/letter_tables.h"
#include "core/text/unicode/mark_tables.h"
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

// Unicode's property Case_Ignorable.
bool IsCaseIgnorable(char32_t c) {
  static constexpr char32_t kInWords[] = {'\'', '.', ':', 0xB7, 0x387, 0x55F, 0x5F4, 0x2018, 0x2019,
      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return std::binary_search(std::begin(kInWords), std::end(kInWords), c);
  }
}

// Unicode's property Cased; requires a character that is not IsCaseIgnorable.
bool IsCased(char32_t c) {
  static constexpr unicode_tables::Range kOthers[] = {{0xAA, 0xAA}, {0xBA, 0xBA}, {0x2160, 0x217F},
      {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || Contains(kOthers, c);
}

// True if the capital sigma at `text[at]` is the last letter of a word.
bool IsFinalSigma(const std::u32string& text, size_t at) {
  size_t before = at, after = at + 1;
  while (before > 0 && IsCaseIgnorable(text[before - 1])) --before;
  while (after < text.size() && IsCaseIgnorable(text[after])) ++after;
  return before > 0 && IsCased(text[before - 1]) && (after == text.size() || !IsCased(text[after]));
}

}  // namespace

bool IsRemoved(char32_t c) { return Contains(unicode_tables::kRemoved, c); }
bool IsSpace(char32_t c) { return Contains(unicode_tables::kSpaces, c); }
bool IsPunctuation(char32_t c) { return Contains(unicode_tables::kPunctuation, c); }
bool IsMark(char32_t c) { return c >= 0x300 && Contains(unicode_tables::kMarks, c); }
bool IsCombining(char32_t c) { return c >= 0x300 && Contains(unicode_tables::kCombining, c); }
bool IsWord(char32_t c) {
  return Contains(unicode_tables::kWordAlso, c) ||
         ((IsLetter(c) || IsNumber(c) || IsCombining(c)) && !Contains(unicode_tables::kNotWord, c));
}
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

std::u32string Decompose(char32_t c, bool compat) {
  utf8proc_int32_t buffer[32];
  int boundary = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), buffer, std::size(buffer), options, &boundary);
  const bool unknown = compat ? Contains(unicode_tables::kNotDecomposedCompat, c)
                              : Contains(unicode_tables::kNotDecomposed, c);
  if (unknown || n <= 0 || n > static_cast<utf8proc_ssize_t>(std::size(buffer)))
    return std::u32string(1, c);
  return std::u32string(buffer, buffer + n);
}

int CombiningClass(char32_t c) {
  if (c < 0x300 || Contains(unicode_tables::kStarterMarks, c)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

char32_t Compose(char32_t a, char32_t b) {
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  const auto size = utf8proc_normalize_utf32(
      pair, 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  const auto joined = static_cast<char32_t>(pair[0]);
  return size == 1 && !Contains(unicode_tables::kNotDecomposed, joined) ? joined : 0;
}

std::u32string CodePoints(absl::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    characters += c.value;
    at += c.size;
  }
  return characters;
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

std::u32string PythonLower(absl::string_view text) {
  const std::u32string characters = CodePoints(text);
  std::u32string lower;
  for (size_t i = 0; i < characters.size(); ++i) {
    const bool final = characters[i] == 0x3A3 && IsFinalSigma(characters, i);
    lower += final ? std::u32string(1, 0x3C2) : Lowercase(characters[i]);
  }
  return lower;
}

bool IsPythonSpace(char32_t c) { return IsSpace(c) || (c >= 0x1C && c <= 0x1F); }

}  // namespace cloze
