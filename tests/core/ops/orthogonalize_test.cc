// Matrices with known singular vectors.
#include "core/ops/orthogonalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/threads.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Returns an orthogonal matrix: the reflection at a random plane.
Table<double> Reflection(int64_t n, uint32_t seed) {
  const Table<float> normal = RandomTable(1, n, seed);
  double squares = 0;
  for (const float x : normal.v) squares += double{x} * x;
  Table<double> q(n, n);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c)
      q(r, c) = (r == c ? 1 : 0) - 2.0 * normal.v[r] * normal.v[c] / squares;
  }
  return q;
}

// Returns U diag(s) V^T.
Table<double> Compose(
    const Table<double>& u, const std::vector<double>& s, const Table<double>& v) {
  Table<double> x(u.rows, v.rows);
  for (size_t i = 0; i < s.size(); ++i) {
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.cols; ++c) x(r, c) += u(r, i) * s[i] * v(c, i);
    }
  }
  return x;
}

struct MatrixSize {
  int64_t rows, cols;
};

class Orthogonalize : public testing::TestWithParam<std::tuple<MatrixSize, DType>> {
 protected:
  MatrixSize size() const { return std::get<0>(GetParam()); }
  DType type() const { return std::get<1>(GetParam()); }
  std::vector<float> Run(const Table<double>& x, double scale = 1e-5) {
    std::vector<float> values;
    for (const double value : x.v) values.push_back(static_cast<float>(scale * value));
    orthogonalizer_.Run(type(), View(values.data(), x.rows, x.cols));
    return values;
  }

  Orthogonalizer orthogonalizer_;
};

TEST_P(Orthogonalize, BringsSingularValuesNearOneAndKeepsTheVectors) {
  const Table<double> u = Reflection(size().rows, 1), v = Reflection(size().cols, 2);
  std::vector<double> s;
  double squares = 0;
  const int64_t side = std::min(size().rows, size().cols);
  for (int64_t i = 0; i < side; ++i) {
    s.push_back(std::pow(0.1, static_cast<double>(i) / static_cast<double>(side)));
    squares += s.back() * s.back();
  }
  const Table<double> x = Compose(u, s, v);
  for (double& value : s) {
    value /= std::sqrt(squares);
    for (int step = 0; step < 4; ++step)
      value = 3.4445 * value - 4.7750 * std::pow(value, 3) + 2.0315 * std::pow(value, 5);
    EXPECT_GT(value, 0.68);
    EXPECT_LT(value, 1.21);
  }
  const Table<double> expected = Compose(u, s, v), same = Orthogonalized(x);
  for (size_t i = 0; i < same.v.size(); ++i) ASSERT_NEAR(same.v[i], expected.v[i], 1e-9) << i;
  const double tolerance = type() == DType::kF32 ? 2e-5 : 0.1;
  std::vector<float> first;
  for (const int threads : {1, 3}) {
    SetThreads(threads);
    const std::vector<float> actual = Run(x);
    for (size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], expected.v[i], tolerance) << i;
    if (threads == 1) first = actual;
    EXPECT_EQ(actual, first) << threads << " threads";
  }
  SetThreads(0);
  EXPECT_LE(orthogonalizer_.bytes(),
      Orthogonalizer::MostBytes(size().rows, size().cols, type()) + 8 * Arena::kAlignment);
}

TEST_P(Orthogonalize, LeavesZero) {
  EXPECT_THAT(Run(Table<double>(size().rows, size().cols)), testing::Each(0));
}

// Momentum without gradients fades to numbers whose inverse is no float.
TEST_P(Orthogonalize, LeavesTheSmallestNumbers) {
  const Table<double> u = Reflection(size().rows, 1), v = Reflection(size().cols, 2);
  EXPECT_THAT(Run(Compose(u, {1}, v), 1e-40), testing::Each(testing::FloatNear(0, 1e-39f)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Orthogonalize,
    testing::Combine(
        testing::Values(MatrixSize{16, 40}, MatrixSize{40, 16}, MatrixSize{33, 33},
            MatrixSize{1, 7}, MatrixSize{7, 1}, MatrixSize{100, 260}, MatrixSize{260, 100}),
        testing::Values(DType::kF32, DType::kBf16)),
    [](const auto& info) {
      const MatrixSize size = std::get<0>(info.param);
      return absl::StrCat(
          size.rows, "x", size.cols, std::get<1>(info.param) == DType::kF32 ? "_f32" : "_bf16");
    });

}  // namespace
}  // namespace cloze::reference
