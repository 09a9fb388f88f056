#include "core/base/charset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cloze {
namespace {

// Decodes in parts of `step` bytes.
std::string Decode(Charset encoding, const std::string& bytes, size_t step) {
  TextDecoder decoder(encoding);
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += step)
    decoder.Append(absl::string_view(bytes).substr(at, step), at + step >= bytes.size(), &out);
  return out;
}

TEST(TextDecoder, DecodesInPartsOfAnySize) {
  const std::string little(
      "\xFF\xFE"
      "a\0\xE9\0\x3D\xD8\x00\xDE\n\0",
      12),
      big("\xFE\xFF"
          "\0a\0\xE9\xD8\x3D\xDE\0\0\n",
          12);
  for (size_t step = 1; step < 14; ++step) {
    EXPECT_EQ(Decode(Charset::kUtf16, little, step), "aé😀\n") << step;
    EXPECT_EQ(Decode(Charset::kUtf16, big, step), "aé😀\n") << step;
    EXPECT_EQ(Decode(Charset::kUtf16, little.substr(2), step), "aé😀\n") << step;
    EXPECT_EQ(Decode(Charset::kLatin1, "caf\xE9 \x80", step), "café \xC2\x80");
    EXPECT_EQ(Decode(Charset::kWindows1252, "\x80 caf\xE9 \x81", step), "€ café \uFFFD");
  }
}

TEST(TextDecoder, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(Decode(Charset::kUtf16, std::string("\x3D\xD8\x61\0\x00\xDE\x62", 7), 1),
      "\uFFFDa\uFFFD\uFFFD");
  EXPECT_EQ(Decode(Charset::kUtf16, std::string("\x3D\xD8", 2), 2), "\uFFFD");
}

TEST(NotUtf8, GuessesTheEncoding) {
  for (const auto& [likely, bytes] :
      std::vector<std::pair<std::string, std::string>>{{"Latin-1", "d\xE9j\xE0 vu"},
          {"KOI8-R", "\xF3\xDF\xC5\xDB\xD8 \xC5\xDD\xA3 \xDC\xD4\xC9\xC8"},
          {"Windows-1251", "\xD1\xFA\xE5\xF8\xFC \xE5\xF9\xB8 \xFD\xF2\xE8\xF5"},
          {"GBK", "\xBD\xF1\xCC\xEC\xCC\xEC\xC6\xF8\xBA\xDC\xBA\xC3"},
          {"EUC", "\xBA\xA3\xC6\xFC\xA4\xCF\xC0\xA4\xB3\xA6"}})
    EXPECT_THAT(NotUtf8("a.txt", 5, bytes),
        testing::AllOf(
            testing::StartsWith("a.txt:5: not UTF-8, perhaps "), testing::HasSubstr(likely)));
  EXPECT_EQ(NotUtf8("a.txt", 5, "ещё"), "");
}

}  // namespace
}  // namespace cloze
