#include "tools/output.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace cloze {
namespace {

TEST(JsonString, EscapesWhatMustBe) {
  EXPECT_EQ(JsonString("a\"b\\c\n\r\t\x01/"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001/\"");
  EXPECT_EQ(JsonString(absl::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(JsonString("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  EXPECT_EQ(JsonString("\xE2\x80\xAE\x7F"), "\"\\u202e\\u007f\"");
}

TEST(JsonString, ReplacesEachInvalidByte) {
  EXPECT_EQ(JsonString("a\xFFz\xE2\x82"), "\"a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonString("\xC0\x80\xED\xA0\x80"),
      "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonString, ReadsBackAsTheSameText) {
  std::string text;
  for (uint32_t c = 1; c < 0x3000; ++c) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
          static_cast<char>(0x80 | (c & 63))};
    }
  }
  EXPECT_EQ(nlohmann::json::parse(JsonString(text)).get<std::string>(), text);
}

TEST(JsonNumber, IsShortAndExact) {
  EXPECT_EQ(JsonNumber(0.1f), "0.1");
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(1.0f / 3), "0.33333334");
  EXPECT_EQ(JsonNumber(1e-30f), "1e-30");
  EXPECT_EQ(JsonNumber(std::nanf("")), "null");
  EXPECT_EQ(JsonNumber(-std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace cloze
