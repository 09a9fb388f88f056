#include "core/base/suggest.h"

#include "gtest/gtest.h"

namespace cloze {
namespace {

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
}

}  // namespace
}  // namespace cloze
