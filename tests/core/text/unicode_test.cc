#include "core/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {
namespace {

std::vector<int> Sizes(absl::string_view text) {
  std::vector<int> sizes;  // negative: invalid
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    sizes.push_back(c.valid ? c.size : -c.size);
    at += c.size;
  }
  return sizes;
}

TEST(Utf8, InvalidSequencesAreAsLongAsInPython) {
  EXPECT_EQ(Sizes("a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80"), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(Sizes("\xE2\x82(\xF0\x90(\xF0\x9F\x98"), (std::vector<int>{-2, 1, -2, 1, -3}));
  EXPECT_EQ(Sizes("\xED\xA0\x80"), (std::vector<int>{-1, -1, -1}));          // surrogate
  EXPECT_EQ(Sizes("\xC0\xAF"), (std::vector<int>{-1, -1}));                  // overlong
  EXPECT_EQ(Sizes("\xF4\x90\x80\x80"), (std::vector<int>{-1, -1, -1, -1}));  // beyond U+10FFFF
  EXPECT_EQ(Sizes("\xE0\x80\x80"), (std::vector<int>{-1, -1, -1}));
  EXPECT_EQ(CountCodePoints("e\xCC\x81\xFF"), 3);
}

TEST(Utf8, EveryCodePointReturns) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    AppendUtf8(c, &text);
    const CodePoint back = CodePointAt(text, 0);
    ASSERT_TRUE(back.valid && back.value == c && back.size == text.size())
        << static_cast<uint32_t>(c);
  }
}

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

}  // namespace
}  // namespace cloze
