// Marginals and best sequence of a CRF, compared with an enumeration of all sequences.
#include "core/ops/crf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/base/threads.h"

namespace cloze {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Problem {
  int64_t n, labels;
  std::vector<float> logits, start, between, end;
  Problem(int64_t n, int64_t labels, uint32_t seed) : n(n), labels(labels) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 2);
    const auto fill = [&](std::vector<float>* v, int64_t size) {
      for (int64_t i = 0; i < size; ++i) v->push_back(normal(random));
    };
    fill(&logits, n * labels), fill(&start, labels), fill(&between, labels * labels),
        fill(&end, labels);
  }
  Crf crf() const { return {start.data(), between.data(), end.data()}; }
  ConstMat mat() const { return View(logits.data(), n, labels); }

  double Score(const std::vector<int>& y) const {
    double score = start[y[0]] + end[y[n - 1]];
    for (int64_t t = 0; t < n; ++t)
      score += logits[t * labels + y[t]] + (t > 0 ? between[y[t - 1] * labels + y[t]] : 0);
    return score;
  }
  // Calls f for each of the labels^n sequences.
  template <typename F>
  void ForEach(F f) const {
    std::vector<int> y(n);
    for (int64_t i = 0; i < std::pow(labels, n); ++i) {
      for (int64_t t = 0, rest = i; t < n; ++t, rest /= labels) y[t] = rest % labels;
      f(y);
    }
  }
};

TEST(Crf, BestSequenceAndMarginalsAreThoseOfAllSequences) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem p(1 + seed % 5, 1 + seed % 4, seed);
    if (seed % 3 == 0) p.between[seed % p.between.size()] = kNever;
    if (seed % 5 == 0 && p.labels > 1) p.start[0] = p.end[1] = kNever;
    double z = 0, most = kNever;
    std::vector<int> expected, best(p.n);
    std::vector<double> sums(p.n * p.labels);
    p.ForEach([&](const std::vector<int>& y) {
      const double score = p.Score(y);
      z += std::exp(score);
      for (int64_t t = 0; t < p.n; ++t) sums[t * p.labels + y[t]] += std::exp(score);
      if (score > most) most = score, expected = y;
    });
    ASSERT_EQ(Viterbi(p.mat(), p.crf(), best.data()), most > kNever) << seed;
    if (most == kNever) continue;
    EXPECT_EQ(best, expected) << seed;
    std::vector<float> marginals(p.n * p.labels);
    CrfMarginals(p.mat(), p.crf(), View(marginals.data(), p.n, p.labels));
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(marginals[i], sums[i] / z, 1e-5) << seed;
    Arena arena;
    Problem copy = p;
    const std::vector<int32_t> y(expected.begin(), expected.end()),
        cu = {0, static_cast<int32_t>(p.n)};
    const Mat logits = View(copy.logits.data(), p.n, p.labels);
    EXPECT_NEAR(CrfLoss(logits, cu, y.data(), p.crf(), 0, {}, arena).loss, std::log(z) - most, 1e-5)
        << seed;
  }
}

// Each row of logits in all rotations: the gradients cancel, and a sum in another order has other
// bits.
TEST(Crf, ThreadsDoNotChangeBits) {
  constexpr int64_t kRows = 100, kLabels = 7;
  const Problem p(kRows, kLabels, 2);
  const std::vector<float> zero(kLabels * kLabels);
  std::vector<float> rotated(kRows * kLabels * kLabels), expected;
  std::vector<int32_t> cu = {0}, y;
  for (int64_t r = 0; r < kLabels; ++r) {
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kLabels; ++j)
        rotated[y.size() * kLabels + (j + r) % kLabels] = p.logits[i * kLabels + j];
      y.push_back(static_cast<int32_t>((i + r) % kLabels));
      cu.push_back(static_cast<int32_t>(y.size()));
    }
  }
  for (const int threads : {1, 2, 3, 4, 7}) {
    SetThreads(threads);
    std::vector<float> logits = rotated, start(kLabels), between(zero.size()), end(kLabels);
    Arena arena;
    CrfLoss(View(logits.data(), y.size(), kLabels), cu, y.data(),
        {zero.data(), zero.data(), zero.data()}, 0.37f, {start.data(), between.data(), end.data()},
        arena);
    for (const auto* part : {&start, &between, &end})
      logits.insert(logits.end(), part->begin(), part->end());
    EXPECT_NEAR(start[0], 0, 1e-6);
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected) << threads << " threads";
  }
  SetThreads(0);
}

TEST(Crf, LongSequencesOfHugeScoresStayFinite) {
  Problem p(3000, 5, 1);
  for (float& x : p.logits) x *= 100;
  std::vector<float> marginals(p.n * p.labels);
  CrfMarginals(p.mat(), p.crf(), View(marginals.data(), p.n, p.labels));
  for (int64_t t = 0; t < p.n; ++t) {
    double sum = 0;
    for (int64_t j = 0; j < p.labels; ++j) sum += marginals[t * p.labels + j];
    ASSERT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Crf, SaysWhenThereIsNoBestSequence) {
  Problem p(3, 2, 1);
  std::vector<int> best(3);
  EXPECT_TRUE(Viterbi(p.mat(), p.crf(), best.data()));
  p.logits[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Viterbi(p.mat(), p.crf(), best.data()));
  EXPECT_EQ(best[1], 1);
  p.logits[3] = p.logits[2];
  EXPECT_FALSE(Viterbi(p.mat(), p.crf(), best.data()));
  p.logits[2] = p.logits[3] = 0, p.end = {kNever, kNever};
  EXPECT_FALSE(Viterbi(p.mat(), p.crf(), best.data()));
}

TEST(Crf, FrozenScoresGetNoGradient) {
  Problem p(4, 3, 1);
  Arena arena;
  const std::vector<int32_t> y = {0, 1, 2, 0}, cu = {0, 0, 4, 4};
  const Mat logits = View(p.logits.data(), 4, 3);
  EXPECT_GT(CrfLoss(logits, cu, y.data(), p.crf(), 1, {nullptr, nullptr, nullptr}, arena).loss, 0);
  double sum = 0;
  for (int64_t j = 0; j < 3; ++j) sum += p.logits[j];
  EXPECT_NEAR(sum, 0, 1e-5);  // logits now hold the gradient
}

}  // namespace
}  // namespace cloze
