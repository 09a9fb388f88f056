#include "core/base/charset.h"

#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cloze {
namespace {

// Decodes in parts of `step` bytes, and converts each line.
std::string Decode(Charset fallback, const std::string& bytes, size_t step = 1000) {
  TextDecoder decoder(fallback);
  std::string text, out;
  for (size_t at = 0; at < bytes.size(); at += step)
    decoder.Append(absl::string_view(bytes).substr(at, step), at + step >= bytes.size(), &text);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) decoder.Convert(static_cast<int64_t>(i + 1), &lines[i]);
  return absl::StrJoin(lines, "\n");
}

// UTF-16, little endian, of ASCII and Latin-1 characters.
std::string Wide(const std::string& latin) {
  std::string wide;
  for (const char c : latin) (wide += c) += '\0';
  return wide;
}

constexpr Charset kAll[] = {
    Charset::kUtf8, Charset::kLatin1, Charset::kUtf16, Charset::kWindows1252};

TEST(TextDecoder, DecodesInPartsOfAnySize) {
  const std::string little(
      "\xFF\xFE"
      "a\0\xE9\0\x3D\xD8\x00\xDE\n\0",
      12),
      big("\xFE\xFF"
          "\0a\0\xE9\xD8\x3D\xDE\0\0\n",
          12);
  for (size_t step = 1; step < 14; ++step) {
    for (const Charset fallback : kAll) {
      EXPECT_EQ(Decode(fallback, little, step), "aé😀\n") << step;
      EXPECT_EQ(Decode(fallback, big, step), "aé😀\n") << step;
    }
    EXPECT_EQ(Decode(Charset::kUtf16, little.substr(2), step), "aé😀\n") << step;
    EXPECT_EQ(Decode(Charset::kLatin1, "caf\xE9 \x80", step), "café \xC2\x80");
    EXPECT_EQ(Decode(Charset::kWindows1252, "\x80 caf\xE9 \x81", step), "€ café \uFFFD");
  }
}

TEST(TextDecoder, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(Decode(Charset::kUtf16, std::string("\x3D\xD8\x61\0\x00\xDE\x62", 7), 1),
      "\uFFFDa\uFFFD\uFFFD");
  EXPECT_EQ(Decode(Charset::kUtf16, std::string("\xFF\xFE\x3D\xD8", 4), 2), "\uFFFD");
}

// The setting of other files does not decode what is UTF-8.
TEST(TextDecoder, KeepsUtf8) {
  for (const std::string text : {"", "a", "plain\n", "ab\n", "\n\nx\n",
           "Wärmepumpe läuft\n€ ж 好\n", "\xEF\xBB\xBFText;Größe\na\n",
           "die Gr\xC3\xB6\xC3\x9F"
           "e\nb"}) {
    for (const Charset fallback : kAll) {
      for (const size_t step : {1, 2, 3, 1000})
        EXPECT_EQ(Decode(fallback, text, step), text) << static_cast<int>(fallback) << step;
    }
  }
}

TEST(TextDecoder, FindsUtf16WithoutAMark) {
  for (const size_t step : {1, 2, 3, 1000}) {
    EXPECT_EQ(Decode(Charset::kUtf16, Wide("ab\nc\xE9\n"), step), "ab\ncé\n");
    EXPECT_EQ(Decode(Charset::kUtf16, Wide("\n\nx"), step), "\n\nx");
    // Shang hai: a byte of the first character is that of a line feed.
    EXPECT_EQ(Decode(Charset::kUtf16, std::string("\x0A\x4E\x77\x6D\x0A\0", 6), step), "上海\n");
    const std::string line(10000, 'x'), wide = Wide(line);
    EXPECT_EQ(Decode(Charset::kUtf16, line, step), line);
    EXPECT_EQ(Decode(Charset::kUtf16, wide, step), line);
  }
}

TEST(TextDecoder, DecidesByTheLinesOfAFile) {
  constexpr Charset kWestern = Charset::kWindows1252;
  // Each line by itself: files that were joined, a broken line in UTF-8.
  EXPECT_EQ(Decode(kWestern, "caf\xE9\n\x80 5\nn\xF6\n"), "café\n€ 5\nnö\n");
  EXPECT_EQ(Decode(kWestern, "café größe\ncaf\xE9\ncafé\n"), "café größe\ncafé\ncafé\n");
  // "Spaß…" is also UTF-8, of a letter of N'Ko.
  EXPECT_EQ(Decode(kWestern, "sch\xF6n\nkl\xFCger\nSpa\xDF\x85\n"), "schön\nklüger\nSpaß…\n");
  EXPECT_EQ(Decode(kWestern, "ж и к\ncaf\xE9\nж\n"), "ж и к\ncafé\nж\n");
  EXPECT_EQ(Decode(kWestern,
                "\xEF\xBB\xBF"
                "caf\xE9\n"),
      "\xEF\xBB\xBF"
      "caf\xE9\n")
      << "a mark is believed";
}

// Returns the message about a file with bad lines, whose numbers are `bad`.
std::string Refusal(std::vector<int64_t> bad, int64_t lines, bool end = true) {
  TextDecoder decoder(Charset::kUtf8);
  for (const int64_t number : bad) {
    std::string part = "caf\xE9 d'\xE9t\xE9";
    decoder.Convert(number, &part);
    decoder.Convert(number, &part);  // of the same line
  }
  return std::string(decoder.Check("a.txt", lines, end).message());
}

TEST(TextDecoder, RefusesMoreThanOneBadLineInAThousand) {
  EXPECT_EQ(Refusal({}, 0), "");
  EXPECT_EQ(Refusal({7}, 1000), "");
  EXPECT_EQ(Refusal({7}, 999),
      "a.txt:7: not UTF-8, perhaps Windows-1252 or Latin-1; 1 of 999 lines are not UTF-8: expected "
      "UTF-8 (convert the file with iconv, or set its encoding: WINDOWS1252)");
  EXPECT_EQ(Refusal({7, 8}, 2000), "");
  EXPECT_THAT(Refusal({7, 8}, 1999), testing::HasSubstr("2 of 1999 lines"));
  EXPECT_EQ(Refusal({1}, 1, false), "") << "more lines may follow";
  std::vector<int64_t> many(1000);
  absl::c_iota(many, 1);
  EXPECT_THAT(Refusal(many, 1000, false), testing::HasSubstr("1000 of the first 1000 lines"));
  EXPECT_EQ(Refusal(many, 20000, false), "");
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

// In a folder of UTF-16 tables, one of ASCII is written as it is.
TEST(CharsetOfFile, LooksAtTheBytes) {
  const std::string path = testing::TempDir() + "/charset_of_file";
  const auto charset = [&](const std::string& bytes, Charset fallback) {
    std::ofstream(path, std::ios::binary) << bytes;
    return CharsetOfFile(path, fallback).value();
  };
  EXPECT_EQ(charset("id,text\n", Charset::kUtf16), Charset::kUtf8);
  EXPECT_EQ(charset(Wide("id,text\n"), Charset::kUtf16), Charset::kUtf16);
  EXPECT_EQ(charset("id,text\n", Charset::kWindows1252), Charset::kWindows1252);
  EXPECT_EQ(charset("\xE4\n", Charset::kWindows1252), Charset::kWindows1252);
  EXPECT_EQ(charset("ä\n", Charset::kWindows1252), Charset::kUtf8);
}

}  // namespace
}  // namespace cloze
