#include "core/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(CodePointAt, InvalidSequencesAreAsLongAsInPython) {
  EXPECT_EQ(Sizes("a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80"), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(Sizes("\xE2\x82(\xF0\x90(\xF0\x9F\x98"), (std::vector<int>{-2, 1, -2, 1, -3}));
  EXPECT_EQ(Sizes("\xED\xA0\x80"), (std::vector<int>{-1, -1, -1}));          // surrogate
  EXPECT_EQ(Sizes("\xC0\xAF"), (std::vector<int>{-1, -1}));                  // overlong
  EXPECT_EQ(Sizes("\xF4\x90\x80\x80"), (std::vector<int>{-1, -1, -1, -1}));  // beyond U+10FFFF
  EXPECT_EQ(Sizes("\xE0\x80\x80"), (std::vector<int>{-1, -1, -1}));
  EXPECT_EQ(CountCodePoints("e\xCC\x81\xFF"), 3);
}

TEST(CodePointAt, EveryCodePointReturns) {
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

TEST(IsUtf8, RefusesWhatIsNotWellFormed) {
  for (const std::string bytes :
      {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xC3",
          "\xC3(", "\xE2\x82", "\xE2\x28\xA1", "\xF0\x9F\x98"}) {
    EXPECT_FALSE(CodePointAt(bytes, 0).valid) << testing::PrintToString(bytes);
    for (int before = 0; before < 9; ++before)
      EXPECT_FALSE(IsUtf8(std::string(before, 'x') + bytes)) << testing::PrintToString(bytes);
  }
}

TEST(CountInvalidUtf8, CountsBytes) {
  EXPECT_EQ(
      CountInvalidUtf8(
          "plain ASCII, \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80 \xEF\xBF\xBD \xF4\x8F\xBF\xBF"),
      0);
  EXPECT_EQ(CountInvalidUtf8("\xFF"), 1);
  EXPECT_EQ(CountInvalidUtf8("12345678\x80"
                             "12345678"),
      1);
  EXPECT_EQ(CountInvalidUtf8("\xC0\x80"), 2);          // overlong
  EXPECT_EQ(CountInvalidUtf8("\xED\xA0\x80"), 3);      // surrogate
  EXPECT_EQ(CountInvalidUtf8("\xF4\x90\x80\x80"), 4);  // behind U+10FFFF
  EXPECT_EQ(CountInvalidUtf8("\xE2\x82"), 2);          // cut off
  EXPECT_EQ(CountInvalidUtf8("\xE2\x82"
                             "a"),
      2);
}

TEST(Utf8Floor, GoesBackToTheStartOfASequence) {
  const std::string text = "a\u00e9\U0001F600";  // 1, 2 and 4 bytes
  const std::vector<size_t> floors = {0, 1, 1, 3, 3, 3, 3, 7};
  for (size_t at = 0; at < floors.size(); ++at) EXPECT_EQ(Utf8Floor(text, at), floors[at]) << at;
  EXPECT_EQ(Utf8Floor("\x80\x80\x80\x80\x80", 4), 1);  // at most 3 bytes
}

TEST(FormatDuration, ReadsWell) {
  EXPECT_EQ(FormatDuration(0.4), "0s");
  EXPECT_EQ(FormatDuration(59.6), "1m00s");
  EXPECT_EQ(FormatDuration(723), "12m03s");
  EXPECT_EQ(FormatDuration(3600 * 3 + 300), "3h05m");
  EXPECT_EQ(FormatDuration(86400 * 2 + 3600 * 7), "2d07h");
  EXPECT_EQ(FormatDuration(NAN), "?");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatDuration(1e300), "?");
}

TEST(FormatCount, ReadsWell) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(12345), "12.3k");
  EXPECT_EQ(FormatCount(999999), "1M");
  EXPECT_EQ(FormatCount(4.56e6), "4.56M");
  EXPECT_EQ(FormatCount(INFINITY), "?");
}

// Returns the name that DidYouMean suggests, or "".
std::string Nearest(absl::string_view word, const std::vector<std::string>& names) {
  const std::string hint = DidYouMean(word, names);
  return hint.empty() ? "" : hint.substr(16, hint.size() - 18);
}

TEST(ListOr, PutsOrBeforeTheLast) {
  EXPECT_EQ(ListOr({"a"}), "a");
  EXPECT_EQ(ListOr({"a", "b"}), "a or b");
  EXPECT_EQ(ListOr({"a", "b", "c"}), "a, b or c");
}

TEST(Nearest, FindsTypingErrors) {
  const std::vector<std::string> names = {
      "steps", "shape", "epochs", "warmup_share", "warmup_steps"};
  EXPECT_EQ(Nearest("stepz", names), "steps");
  EXPECT_EQ(Nearest("STEPS", names), "steps");
  EXPECT_EQ(Nearest("setps", names), "steps");
  EXPECT_EQ(Nearest("epoch", names), "epochs");
  EXPECT_EQ(Nearest("warmup", names), "warmup_share");
  EXPECT_EQ(Nearest("warmupsteps", names), "warmup_steps");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(Nearest("qqqqq", {"steps", "shape"}), "");
  EXPECT_EQ(Nearest("", {"steps"}), "");
  EXPECT_EQ(Nearest("xy", {"ab"}), "");
  EXPECT_EQ(Nearest(std::string(1000000, 'a'), {"steps"}), "");
  EXPECT_EQ(Nearest("steps", {}), "");
}

TEST(DidYouMean, IsAHintOrNothing) {
  EXPECT_EQ(DidYouMean("stepz", {"steps"}), "; did you mean \"steps\"?");
  EXPECT_EQ(DidYouMean("qqqqq", {"steps"}), "");
  EXPECT_EQ(DidYouMean("steps", {"steps\x1b"}), "; did you mean \"steps\\u{1B}\"?");
}

TEST(Nearest, FindsMisspeltNames) {
  const std::vector<std::string> names = {
      "learning_rate", "weight_decay", "beta1", "beta2", "pretrain", "predict"};
  EXPECT_EQ(Nearest("learnig_rate", names), "learning_rate");
  EXPECT_EQ(Nearest("LEARNING_RATE", names), "learning_rate");
  EXPECT_EQ(Nearest("waeight_deccay", names), "weight_decay");
  EXPECT_EQ(Nearest("bta1", names), "beta1");
  EXPECT_EQ(Nearest("pretrian", names), "pretrain");
  EXPECT_EQ(Nearest("colour", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest(std::string(100000, 'x'), names), "");
  EXPECT_EQ(DidYouMean("beta3", names), "; did you mean \"beta1\"?");
  EXPECT_EQ(DidYouMean("zzzzzz", names), "");
}

}  // namespace
}  // namespace cloze
