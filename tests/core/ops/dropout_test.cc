// Statistics of dropout, and what its random numbers depend on.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

constexpr int64_t kRows = 400, kCols = 500;

// Dropout of ones: factors [rows, cols].
std::vector<float> Factors(float p, uint64_t seed, uint32_t stream, uint64_t example,
    int32_t position, int64_t rows = kRows, int64_t cols = kCols) {
  std::vector<uint64_t> examples;
  std::vector<int32_t> positions;
  for (int64_t r = 0; r < rows; ++r)
    examples.push_back(example + r / 100),
        positions.push_back(position + static_cast<int32_t>(r % 100));
  std::vector<float> x(rows * cols, 1.0f);
  Dropout(View(x.data(), rows, cols), {p, seed, stream, {examples.data(), positions.data()}},
      View(x.data(), rows, cols));
  return x;
}

// Largest deviation of the mean of n independent numbers, at five standard deviations.
double Deviation(double variance, double n) { return 5 * std::sqrt(variance / n); }

class DropoutRate : public testing::TestWithParam<float> {};

TEST_P(DropoutRate, KeepsOneMinusPAndTheMean) {
  const float p = GetParam();
  const std::vector<float> x = Factors(p, 1, 4096, 0, 0);
  double kept = 0, sum = 0;
  for (const float f : x) {
    EXPECT_TRUE(f == 0 || f == 1 / (1 - p));
    kept += f != 0;
    sum += f;
  }
  const double n = x.size();
  EXPECT_NEAR(kept / n, 1 - p, Deviation(p * (1 - p), n) + 0x1p-17);
  EXPECT_NEAR(sum / n, 1, (Deviation(p * (1 - p), n) + 0x1p-17) / (1 - p));
}

// Every row and column keeps as many elements as chance allows.
TEST_P(DropoutRate, IsEvenOverRowsAndColumns) {
  const float p = GetParam();
  const std::vector<float> x = Factors(p, 2, 4096, 0, 0);
  std::vector<double> rows(kRows), cols(kCols);
  for (int64_t i = 0; i < kRows * kCols; ++i)
    rows[i / kCols] += x[i] != 0, cols[i % kCols] += x[i] != 0;
  for (const double kept : rows)
    EXPECT_NEAR(kept / kCols, 1 - p, Deviation(p * (1 - p), kCols) + 0x1p-17);
  for (const double kept : cols)
    EXPECT_NEAR(kept / kRows, 1 - p, Deviation(p * (1 - p), kRows) + 0x1p-17);
}

INSTANTIATE_TEST_SUITE_P(P, DropoutRate, testing::Values(0.05f, 0.1f, 0.5f, 0.9f),
    [](const auto& info) { return std::to_string(static_cast<int>(info.param * 100)); });

// Independent masks agree on p^2 + (1 - p)^2 of their elements.
TEST(Dropout, IsIndependentForEverySeedStreamExampleAndPosition) {
  const float p = 0.5;
  const std::vector<std::vector<float>> masks = {Factors(p, 1, 4096, 0, 0),
      Factors(p, 2, 4096, 0, 0), Factors(p, uint64_t{1} << 32 | 1, 4096, 0, 0),
      Factors(p, 1, 8192, 0, 0), Factors(p, 1, 4097, 0, 0), Factors(p, 1, 4096, 1000, 0),
      Factors(p, 1, 4096, uint64_t{1} << 32, 0), Factors(p, 1, 4096, 0, 1000)};
  for (size_t a = 0; a < masks.size(); ++a) {
    for (size_t b = a + 1; b < masks.size(); ++b) {
      double equal = 0;
      for (int64_t i = 0; i < kRows * kCols; ++i) equal += masks[a][i] == masks[b][i];
      EXPECT_NEAR(equal / (kRows * kCols), 0.5, Deviation(0.25, kRows * kCols))
          << a << " and " << b;
    }
  }
}

TEST(Dropout, NeighbouringRowsDiffer) {
  const std::vector<float> x = Factors(0.5, 1, 4096, 0, 0, 400, 64);
  std::set<std::vector<float>> rows;
  for (int64_t r = 0; r < 400; ++r)
    rows.insert(std::vector<float>(x.begin() + r * 64, x.begin() + (r + 1) * 64));
  EXPECT_EQ(rows.size(), 400u);
}

// The factor of an element depends only on its row's coordinates and its column, not on the number
// of rows or columns or on the order of rows.
TEST(Dropout, DoesNotHangOnTheShapeOfTheMatrix) {
  const std::vector<float> wide = Factors(0.3, 1, 4096, 5, 0, 100, 500),
                           narrow = Factors(0.3, 1, 4096, 5, 0, 100, 24);
  const std::vector<float> later = Factors(0.3, 1, 4096, 5, 40, 60, 500);
  for (int64_t r = 0; r < 100; ++r) {
    for (int64_t c = 0; c < 24; ++c) ASSERT_EQ(wide[r * 500 + c], narrow[r * 24 + c]);
  }
  for (int64_t i = 0; i < 60 * 500; ++i) ASSERT_EQ(wide[40 * 500 + i], later[i]);
}

TEST(Dropout, OfZeroCopies) {
  const Table<float> x = RandomTable(70, 24, 1);
  Table<float> y(70, 24);
  Dropout(View(x.v.data(), 70, 24), {}, View(y.v.data(), 70, 24));
  EXPECT_EQ(x.v, y.v);
}

}  // namespace
}  // namespace cloze::reference
