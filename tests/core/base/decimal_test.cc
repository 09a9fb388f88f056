#include "core/base/text.h"

#include <gtest/gtest.h>

namespace cloze {
namespace {

TEST(ParseDecimal, TakesDecimalNotationOnly) {
  const std::pair<const char*, double> numbers[] = {{"0", 0}, {"-1.5", -1.5}, {"+2", 2},
      {".5", 0.5}, {"5.", 5}, {"3e-4", 3e-4}, {"1E+2", 100}, {" 7\t", 7}, {"007", 7},
      {"1e-999", 0}};
  for (const auto& [text, number] : numbers) {
    double value = -1;
    float narrow = -1;
    EXPECT_TRUE(ParseDecimal(text, &value)) << text;
    EXPECT_EQ(value, number) << text;
    EXPECT_TRUE(ParseDecimal(text, &narrow)) << text;
    EXPECT_EQ(narrow, static_cast<float>(number)) << text;
  }
  for (const char* text :
      {"", " ", ".", "-", "e5", "1e", "0x10", "0X1p3", "inf", "-Infinity", "nan", "NaN", "1,5",
          "1_000", "3 kg", "1 2", "--1", "+-1", "1.2.3", "1e999", "1f", "\u0663"}) {
    double value = 0;
    float narrow = 0;
    EXPECT_FALSE(ParseDecimal(text, &value)) << text;
    EXPECT_FALSE(ParseDecimal(text, &narrow)) << text;
  }
  float narrow = 0;
  EXPECT_FALSE(ParseDecimal("1e39", &narrow));
}

}  // namespace
}  // namespace cloze
