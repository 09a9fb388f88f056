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

}  // namespace
}  // namespace cloze
