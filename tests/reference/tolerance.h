// Tolerances derived from the arithmetic, and comparisons that report the worst element.
#ifndef CLOZE_TESTS_REFERENCE_TOLERANCE_H_
#define CLOZE_TESTS_REFERENCE_TOLERANCE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/tensor/mat.h"

namespace cloze::reference {

inline double UnitRoundoff(DType type) { return type == DType::kF32 ? 0x1p-24 : 0x1p-9; }

// Arithmetic behind a result: `terms` is the longest sum (in f32), `roundings` the number of
// results stored in `type` on the way.
struct Path {
  int64_t terms = 1;
  double roundings = 1;
  DType type = DType::kF32;
};

// Returns the largest error of a number whose summands have this norm. Roundings are independent,
// so a sum of n terms errs by sqrt(n) of them; the factor 4 covers the tail of their distribution
// and the error constants of exp and the like.
inline double Tolerance(double norm, const Path& path) {
  return 4 * norm *
         (path.roundings * UnitRoundoff(path.type) +
             (4 + std::sqrt(static_cast<double>(path.terms))) * UnitRoundoff(DType::kF32));
}

template <typename T>
double MaxNorm(const std::vector<T>& x) {
  double norm = 0;
  for (const T value : x) norm = std::max(norm, std::fabs(static_cast<double>(value)));
  return norm;
}

// Expects |actual - expected| <= tolerance(i) for every i; a failure shows the worst element, with
// row and column if `cols` is given.
template <typename T, typename F>
void ExpectWithin(const std::string& what, int64_t cols, const std::vector<T>& actual,
    const std::vector<double>& expected, F tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  size_t worst = 0;
  double ratio = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::fabs(actual[i] - expected[i]), bound = tolerance(i);
    const double r = std::isfinite(error) ? (error == 0 ? 0 : error / bound)
                                          : std::numeric_limits<double>::infinity();
    if (r > ratio) worst = i, ratio = r;
  }
  EXPECT_LE(ratio, 1) << what << " [" << worst / cols << ", " << worst % cols << "]: got "
                      << double{actual[worst]} << ", expected " << expected[worst]
                      << "; the error is this many times its tolerance of " << tolerance(worst);
}

// The same with one tolerance for all elements, from the largest expected one or `norm`, whichever
// is larger.
template <typename T>
void ExpectClose(const std::string& what, int64_t cols, const std::vector<T>& actual,
    const std::vector<double>& expected, const Path& path, double norm = 0) {
  const double tolerance = Tolerance(std::max(norm, MaxNorm(expected)), path);
  ExpectWithin(what, cols, actual, expected, [&](size_t) { return tolerance; });
}

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_TOLERANCE_H_
