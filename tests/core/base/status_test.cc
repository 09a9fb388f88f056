#include "core/base/status.h"

#include <gtest/gtest.h>

namespace cloze {
namespace {

TEST(Error, CarriesItsExitCode) {
  for (const Exit exit :
      {Exit::kUsage, Exit::kData, Exit::kNoInput, Exit::kInternal, Exit::kCannotCreate, Exit::kIo,
          Exit::kInterrupted, Exit::kMismatch, Exit::kLimit, Exit::kSpec}) {
    const absl::Status status = Error(exit, "what");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(ExitOf(status), exit);
    EXPECT_EQ(status.message(), "what");
  }
  EXPECT_EQ(ExitOf(absl::OkStatus()), Exit::kOk);
  EXPECT_EQ(ExitOf(absl::InternalError("foreign")), Exit::kInternal);
  EXPECT_EQ(ExitOf(absl::NotFoundError("foreign")), Exit::kInternal);
}

TEST(Annotate, AddsContextAndKeepsTheCode) {
  const absl::Status status = Annotate(Error(Exit::kMismatch, "what"), "where");
  EXPECT_EQ(status.message(), "where: what");
  EXPECT_EQ(ExitOf(status), Exit::kMismatch);
  EXPECT_TRUE(Annotate(absl::OkStatus(), "where").ok());
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return Error(Exit::kData, "odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckQuarter(int n) {
  RETURN_IF_ERROR(Quarter(n).status());
  return absl::OkStatus();
}

TEST(Macros, PassErrorsOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(ExitOf(Quarter(6).status()), Exit::kData);
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_EQ(ExitOf(CheckQuarter(3)), Exit::kData);
}

TEST(Check, EndsTheProgram) {
  CLOZE_CHECK(1 + 1 == 2);
  EXPECT_DEATH(CLOZE_CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: internal error: 1 \\+ 1 == 3");
}

TEST(Quote, LeavesTextAlone) {
  EXPECT_EQ(Quote(""), "");
  EXPECT_EQ(Quote("plain text"), "plain text");
  EXPECT_EQ(Quote("na\xC3\xAFve \xE4\xB8\xAD \xF0\x9F\x98\x80"),
      "na\xC3\xAFve \xE4\xB8\xAD \xF0\x9F\x98\x80");
}

TEST(Quote, ShowsWhatCouldHarmATerminal) {
  EXPECT_EQ(Quote("\x1b[31m"), "\\u{1B}[31m");
  EXPECT_EQ(Quote("a\nb\tc\r"), "a\\u{A}b\\u{9}c\\u{D}");
  EXPECT_EQ(Quote(absl::string_view("a\0b", 3)), "a\\u{0}b");
  EXPECT_EQ(Quote("\x7f\xC2\x9B"), "\\u{7F}\\u{9B}");
  EXPECT_EQ(Quote("\xE2\x80\xAE gnp"), "\\u{202E} gnp");
  EXPECT_EQ(Quote("\xE2\x81\xA6"), "\\u{2066}");
}

TEST(Quote, ShowsInvalidUtf8ByteByByte) {
  EXPECT_EQ(Quote("\xFF\xFE"), "\\xFF\\xFE");
  EXPECT_EQ(Quote("\xC0\x80"), "\\xC0\\x80");           // overlong
  EXPECT_EQ(Quote("\xED\xA0\x80"), "\\xED\\xA0\\x80");  // surrogate
  EXPECT_EQ(Quote("caf\xC3"), "caf\\xC3");              // cut
}

TEST(Quote, CutsAfterEightyBytesAtACharacter) {
  EXPECT_EQ(Quote(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(Quote(std::string(81, 'a')), std::string(80, 'a') + "...");
  EXPECT_EQ(Quote(std::string(79, 'a') + "\xC3\xAF"), std::string(79, 'a') + "...");
  EXPECT_EQ(Quote(std::string(79, 'a') + "\n"), std::string(79, 'a') + "...");
}

}  // namespace
}  // namespace cloze
