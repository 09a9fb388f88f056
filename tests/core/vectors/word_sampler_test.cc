#include "core/vectors/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cloze {
namespace {

TEST(WordSampler, DrawsByTheRootsOfCounts) {
  const std::vector<int64_t> counts = {10000, 400, 400, 100, 25, 1};
  const WordSampler sampler(counts);
  const Philox philox(1, Purpose::kWordVectors);
  constexpr int kBlocks = 200'000;
  std::vector<int64_t> drawn(counts.size());
  for (int i = 0; i < kBlocks; ++i) {
    for (const uint32_t random : philox(i, 0, 0)) ++drawn[sampler.Word(random)];
  }
  double roots = 0;
  for (const int64_t count : counts) roots += std::sqrt(count);
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = 4.0 * kBlocks * std::sqrt(counts[i]) / roots;
    EXPECT_NEAR(drawn[i], expected, 5 * std::sqrt(expected)) << i;
  }
  EXPECT_EQ(WordSampler({7}).Word(~0u), 0);
}

}  // namespace
}  // namespace cloze
