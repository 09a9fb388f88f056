// How far a result may be from the reference, and the comparison that says where it is too far.
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

// How results come about: `terms` is the longest sum (in f32), `roundings` the number of results
// stored in `type` on the way.
struct Path {
  int64_t terms = 1;
  double roundings = 1;
  DType type = DType::kF32;
};

// Largest error of a number whose summands have this norm. Roundings are independent, so a sum of n
// errs by sqrt(n) of them; 4 is for the tail of their distribution and the constants of exp and
// friends.
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

// |actual - expected| <= tolerance(i) for every i; else fails and shows the worst element. `cols`
// tells rows from columns in the message.
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

// The same with one tolerance for all, from the largest expected element (or `norm` when that is
// larger).
template <typename T>
void ExpectClose(const std::string& what, int64_t cols, const std::vector<T>& actual,
    const std::vector<double>& expected, const Path& path, double norm = 0) {
  const double tolerance = Tolerance(std::max(norm, MaxNorm(expected)), path);
  ExpectWithin(what, cols, actual, expected, [&](size_t) { return tolerance; });
}

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_TOLERANCE_H_
