#include "core/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {
namespace {

uint32_t Crc32(absl::string_view bytes) {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
    table[i] = c;
  }
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8;
  return ~crc;
}

// The reference's checksum is printed by `hf_check.py tables`.
TEST(Unicode, AllCodePointsAreAsInTheReference) {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    all += IsRemoved(c) ? 'D' : IsSpace(c) ? 'S' : 'K';
    all += IsChinese(c) ? 'C' : '-';
    all += IsPunctuation(c) ? 'P' : IsSpace(c) ? 'W' : '-';
    std::string lowered;
    for (const char32_t part : Decompose(c)) {
      if (IsMark(part)) continue;
      AppendUtf8(part, &all);
      for (const char32_t lower : Lowercase(part)) AppendUtf8(lower, &lowered);
    }
    all += '\t';
    for (const char32_t lower : Lowercase(c)) AppendUtf8(lower, &all);
    all += '\t' + lowered + '\n';
  }
  EXPECT_EQ(Crc32(all), 0x9158C559u);
}

// Expected: Python's str.lower().
TEST(Unicode, PythonLower) {
  const std::pair<const char32_t*, const char*> cases[] = {{U"\u03c3", "\u03a3"},
      {U"\u03b1\u03c2", "\u0391\u03a3"}, {U"\u03b1\u03c2.", "\u0391\u03a3."},
      {U"\u03b1\u03c3.\u03b1", "\u0391\u03a3.\u0391"},
      {U"\u03b1\u03c2 \u03b1", "\u0391\u03a3 \u0391"}, {U"1\u03c3", "1\u03a3"},
      {U"\u24d0\u03c2", "\u24b6\u03a3"}, {U"\u02b0\u03c3", "\u02b0\u03a3"},
      {U"a:\u0301\u03c2\u00ad1", "A:\u0301\u03a3\u00ad1"},
      {U"i\u0307\u01c6\u00df", "\u0130\u01c5\u00df"}};
  for (const auto& [lower, text] : cases) EXPECT_EQ(PythonLower(text), lower) << text;
}

TEST(Unicode, PythonSpaces) {
  std::u32string spaces;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (IsPythonSpace(c)) spaces += c;
  }
  EXPECT_EQ(spaces,
      U"\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
      U"\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000");
}

}  // namespace
}  // namespace cloze
