#include "core/base/hash.h"

#include <gtest/gtest.h>

namespace cloze {
namespace {

std::string HexOf(std::initializer_list<absl::string_view> texts) {
  Hasher hasher;
  for (const absl::string_view text : texts) hasher.AddText(text);
  return hasher.Hex();
}

TEST(Hasher, KnowsWhereATextEnds) {
  EXPECT_EQ(HexOf({"ab", "c"}), HexOf({"ab", "c"}));
  EXPECT_NE(HexOf({"ab", "c"}), HexOf({"a", "bc"}));
  EXPECT_NE(HexOf({"abc", ""}), HexOf({"abc"}));
}

}  // namespace
}  // namespace cloze
