// The order of the sum over micro-batches.
#include "tasks/training/gradient_sum.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cloze {
namespace {

// Numbers whose sum depends on the order.
float Gradient(int64_t number, int64_t i) {
  return std::ldexp(1.0f + static_cast<float>(i) / 64, static_cast<int>(number * 7 % 23)) * 1.1f;
}

// By recursion: the left part has the largest power of two of leaves.
float Expected(int64_t first, int64_t n, int64_t i) {
  if (n == 1) return Gradient(first, i);
  int64_t left = 1;
  while (2 * left < n) left *= 2;
  return Expected(first, left, i) + Expected(first + left, n - left, i);
}

class GradientSumTest : public testing::Test {
 protected:
  GradientSumTest() {
    store_.AddVector({.name = "a"}, 100, Init::kZero);
    store_.Allocate(true);
  }
  void Step(GradientSum& sum, int64_t n) {
    const int64_t starts[] = {0, n};
    for (int64_t number = 0; number < n; ++number) {
      sum.Add(number, [&] {
        for (int64_t i = 0; i < 100; ++i) store_.grads()[i] += Gradient(number, i);
      });
    }
    sum.Finish(OneRank(), starts);
  }
  ParamStore store_;
};

TEST_F(GradientSumTest, IsATreeOverTheNumbers) {
  GradientSum sum(&store_);
  for (int64_t n = 1; n < 20; ++n) {
    Step(sum, n);
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(store_.grads()[i], Expected(0, n, i)) << n;
    for (float& g : store_.grads()) g = 0;
  }
}

TEST_F(GradientSumTest, NeedsTheLogarithmOfBuffers) {
  for (const auto& [n, buffers] : {std::pair(1, 0), {2, 1}, {3, 1}, {4, 2}, {7, 2}, {8, 3}})
    EXPECT_EQ(GradientBuffers(n), buffers) << n;
  for (const auto& [n, buffers] : {std::pair(1, 0), {2, 1}, {3, 2}, {4, 2}, {5, 3}, {7, 4}})
    EXPECT_EQ(GradientBuffers(n, true), buffers) << n;
}

}  // namespace
}  // namespace cloze
