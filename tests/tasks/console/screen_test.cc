#include "tasks/console/screen.h"

#include <gtest/gtest.h>

namespace cloze {
namespace {

TEST(ForTerminal, EscapesWhatATerminalObeys) {
  EXPECT_EQ(ForTerminal("a\tb\nc\r\n\nd"), "a\tb\nc\r\n\nd");
  EXPECT_EQ(ForTerminal("\x1b]0;evil\x07"), "\\u{1B}]0;evil\\u{7}");
  EXPECT_EQ(ForTerminal("a\rb\r"), "a\\u{D}b\\u{D}");
  EXPECT_EQ(ForTerminal("\u202E \u009B31m \u2028"), "\\u{202E} \\u{9B}31m \\u{2028}");
  EXPECT_EQ(ForTerminal("\x9b"
                        "31m \xC3"),
      "\\x9B31m \\xC3");
  EXPECT_EQ(ForTerminal(std::string("\0\x7F", 2)), "\\u{0}\\u{7F}");
  EXPECT_EQ(ForTerminal("käse 好 😀"), "käse 好 😀");
  EXPECT_EQ(ForTerminal(""), "");
}

}  // namespace
}  // namespace cloze
