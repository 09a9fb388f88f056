#include "core/base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace cloze {
namespace {

// A generator with these two words as key, whatever the purpose adds.
Philox WithKey(uint32_t k0, uint32_t k1) {
  const uint32_t high = k1 ^ (static_cast<uint32_t>(Purpose::kMask) * 0x9E3779B9u);
  return Philox(uint64_t{high} << 32 | k0, Purpose::kMask);
}

// Known answers of philox4x32-10 that its authors publish with Random123 (kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(
      WithKey(0, 0)(0, 0, 0), (Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(WithKey(~0u, ~0u)(~uint64_t{0}, ~0u, ~0u),
      (Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(WithKey(0xa4093822, 0x299f31d0)(
                uint64_t{0x03707344} << 32 | 0x13198a2e, 0x243f6a88, 0x85a308d3),
      (Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryPartOfKeyAndCounterCounts) {
  const Philox::Words base = Philox(1, Purpose::kMask)(2, 3, 4);
  EXPECT_EQ(Philox(1, Purpose::kMask)(2, 3, 4), base);
  EXPECT_NE(Philox(2, Purpose::kMask)(2, 3, 4), base);
  EXPECT_NE(Philox(1 + (uint64_t{1} << 40), Purpose::kMask)(2, 3, 4), base);
  EXPECT_NE(Philox(1, Purpose::kDropout)(2, 3, 4), base);
  EXPECT_NE(Philox(1, Purpose::kMask)(2 + (uint64_t{1} << 40), 3, 4), base);
  EXPECT_NE(Philox(1, Purpose::kMask)(2, 4, 4), base);
  EXPECT_NE(Philox(1, Purpose::kMask)(2, 3, 5), base);
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(Philox::Uniform(0), 0.0f);
  EXPECT_LT(Philox::Uniform(~0u), 1.0f);
  const Philox philox(1, Purpose::kInit);
  double sum = 0, squares = 0;
  const int n = 40000;
  for (int i = 0; i < n; ++i) {
    const float u = Philox::Uniform(philox(i, 0, 0)[i % 4]);
    sum += u, squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(Philox, BelowIsInRangeAndEven) {
  EXPECT_EQ(Philox::Below(~0u, 1), 0);
  EXPECT_EQ(Philox::Below(~0u, 10), 9);
  EXPECT_EQ(Philox::Below(0, 10), 0);
  EXPECT_EQ(Philox::Below(~0u, ~0u), ~0u - 1);
  const Philox philox(7, Purpose::kMask);
  std::vector<int> counts(10);
  for (int i = 0; i < 50000; ++i) ++counts[Philox::Below(philox(i, 1, 2)[0], 10)];
  for (const int count : counts) EXPECT_NEAR(count, 5000, 5 * std::sqrt(5000 * 0.9));
}

TEST(PermutedIndex, IsAPermutation) {
  const Philox philox(3, Purpose::kShuffle);
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 65, 100, 1000, 4096, 4097, 70001}) {
    std::vector<char> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t p = PermutedIndex(i, n, philox, 0);
      ASSERT_LT(p, n);
      ASSERT_FALSE(seen[p]) << n << " " << i;
      seen[p] = 1;
    }
  }
}

TEST(PermutedIndex, LargeRangesAndEpochs) {
  const Philox philox(3, Purpose::kShuffle);
  const uint64_t n = uint64_t{1} << 40;
  EXPECT_LT(PermutedIndex(n - 1, n, philox, 0), n);
  EXPECT_LT(PermutedIndex(12345, n + 1, philox, 0), n + 1);
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i)
    same += PermutedIndex(i, 1000, philox, 0) == PermutedIndex(i, 1000, philox, 1);
  EXPECT_LT(same, 20) << "another epoch is another order";
}

// Neighbours must not stay neighbours: the mean distance of uniformly shuffled ones is n / 3.
TEST(PermutedIndex, Mixes) {
  const Philox philox(11, Purpose::kShuffle);
  const int n = 10000;
  double distance = 0, displacement = 0;
  for (int i = 0; i + 1 < n; ++i) {
    const double a = PermutedIndex(i, n, philox, 0), b = PermutedIndex(i + 1, n, philox, 0);
    distance += std::abs(a - b);
    displacement += std::abs(a - i);
  }
  EXPECT_NEAR(distance / n, n / 3.0, n * 0.03);
  EXPECT_NEAR(displacement / n, n / 3.0, n * 0.03);
}

}  // namespace
}  // namespace cloze
