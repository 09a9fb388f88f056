#include "core/vectors/subwords.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Subwords, HashesAsFastText) {
  EXPECT_EQ(FnvHash(""), 2166136261u);
  EXPECT_EQ(FnvHash("a"), 0xE40C292Cu);
  EXPECT_EQ(FnvHash("foobar"), 0xBF9CF968u);
  EXPECT_EQ(FnvHash("\xC3\xA9"), 0x3CFA68C1u) << "bytes above 127 are sign-extended";
}

TEST(Subwords, NgramsAreOfCharacters) {
  const SubwordOptions options = {.min_n = 2, .max_n = 3, .buckets = 1000};
  EXPECT_THAT(NgramBuckets("\xC3\xA9"
                           "b",
                  options),
      ElementsAre(627, 323, 833, 229, 561));
  EXPECT_THAT(NgramBuckets("ab", {.min_n = 3, .max_n = 0}), IsEmpty());
  EXPECT_EQ(NgramBuckets("ab", {.min_n = 1, .max_n = 1, .buckets = 1 << 30}).size(), 2)
      << "not the marks of start and end";
}

TEST(Subwords, SharesRowsOfEqualNgrams) {
  const SubwordRows subwords({"ab", "cab"}, {.min_n = 3, .max_n = 3});
  // <ab ab> | <ca cab ab>
  EXPECT_THAT(subwords.of(0), ElementsAre(0, 2, 3));
  EXPECT_THAT(subwords.of(1), ElementsAre(1, 4, 5, 3));
  EXPECT_EQ(subwords.rows(), 6);
}

}  // namespace
}  // namespace cloze
