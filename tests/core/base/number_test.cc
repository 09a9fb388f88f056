#include "core/base/number.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cloze {
namespace {

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

}  // namespace
}  // namespace cloze
