// Dual numbers v + d e with e^2 = 0: run a function on them and read its exact derivative from d.
#ifndef CLOZE_TESTS_REFERENCE_DUAL_H_
#define CLOZE_TESTS_REFERENCE_DUAL_H_

#include <cmath>
#include <numbers>

namespace cloze::reference {

struct Dual {
  double v = 0, d = 0;
  Dual() = default;
  Dual(double value, double derivative = 0)
      : v(value), d(derivative) {}  // NOLINT: numbers are dual numbers
};

inline Dual operator-(Dual a) { return {-a.v, -a.d}; }
inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
inline Dual operator/(Dual a, Dual b) { return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v}; }
inline Dual& operator+=(Dual& a, Dual b) { return a = a + b; }
inline Dual& operator-=(Dual& a, Dual b) { return a = a - b; }
inline Dual& operator*=(Dual& a, Dual b) { return a = a * b; }
inline Dual& operator/=(Dual& a, Dual b) { return a = a / b; }
inline bool operator<(Dual a, Dual b) { return a.v < b.v; }
inline bool operator>(Dual a, Dual b) { return a.v > b.v; }

inline Dual exp(Dual a) { return {std::exp(a.v), std::exp(a.v) * a.d}; }
inline Dual log(Dual a) { return {std::log(a.v), a.d / a.v}; }
inline Dual sqrt(Dual a) { return {std::sqrt(a.v), a.d / (2 * std::sqrt(a.v))}; }
inline Dual erf(Dual a) {
  return {std::erf(a.v), 2 * std::numbers::inv_sqrtpi * std::exp(-a.v * a.v) * a.d};
}
inline Dual tanh(Dual a) { return {std::tanh(a.v), (1 - std::tanh(a.v) * std::tanh(a.v)) * a.d}; }
inline Dual max(Dual a, Dual b) { return a < b ? b : a; }

// Returns the value without its derivative.
inline double ValueOf(double x) { return x; }
inline double ValueOf(Dual x) { return x.v; }

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_DUAL_H_
