#include "core/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace cloze {
namespace {

std::string Encode(uint32_t cp) {
  if (cp < 0x80) return {static_cast<char>(cp)};
  if (cp < 0x800) return {static_cast<char>(0xC0 | cp >> 6), static_cast<char>(0x80 | (cp & 63))};
  if (cp < 0x10000)
    return {static_cast<char>(0xE0 | cp >> 12), static_cast<char>(0x80 | (cp >> 6 & 63)),
        static_cast<char>(0x80 | (cp & 63))};
  return {static_cast<char>(0xF0 | cp >> 18), static_cast<char>(0x80 | (cp >> 12 & 63)),
      static_cast<char>(0x80 | (cp >> 6 & 63)), static_cast<char>(0x80 | (cp & 63))};
}

TEST(DecodeUtf8, ReadsEveryCodePoint) {
  for (uint32_t cp = 0; cp <= 0x10FFFF; ++cp) {
    uint32_t read = ~0u;
    const std::string bytes = Encode(cp) + "!";
    const int n = DecodeUtf8(bytes, &read);
    if (cp >= 0xD800 && cp <= 0xDFFF) {
      ASSERT_EQ(n, 0) << cp;
    } else {
      ASSERT_EQ(n, bytes.size() - 1) << cp;
      ASSERT_EQ(read, cp);
    }
  }
}

TEST(DecodeUtf8, RefusesWhatIsNotUtf8) {
  for (const std::string bytes :
      {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3",
          "\xC3(", "\xE2\x82", "\xE2\x28\xA1", "\xF0\x9F\x98"}) {
    uint32_t cp = 0;
    EXPECT_EQ(DecodeUtf8(bytes, &cp), 0) << testing::PrintToString(bytes);
    EXPECT_FALSE(IsUtf8("ok" + bytes)) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace cloze
