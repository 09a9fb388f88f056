// Numbers as text, and whole-number rounding.
#ifndef CLOZE_CORE_BASE_NUMBER_H_
#define CLOZE_CORE_BASE_NUMBER_H_

#include <charconv>
#include <cstdint>
#include <string>

namespace cloze {

// Returns the shortest decimal that reads back as the same number of type T: "0.1", "1e-12", "nan",
// "inf". Independent of the locale.
template <typename T>
std::string Shortest(T value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

// Return n / unit rounded up, and n rounded up to a multiple of unit. Require n >= 0, unit > 0.
constexpr int64_t CeilDiv(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return CeilDiv(n, unit) * unit; }

// Returns "1 text", "2 texts".
inline std::string Counted(long long n, const char* noun) {
  return std::to_string(n) + ' ' + noun + (n == 1 ? "" : "s");
}

// Returns the double whose shortest decimal is that of `x`: 0.1 for 0.1f.
inline double Decimal(float x) {
  const std::string text = Shortest(x);
  double value = x;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "45s", "12m03s", "3h05m", "2d07h"; "?" if negative or not finite.
std::string FormatDuration(double seconds);
// "950", "12.3k", "4.56M"; "?" if not finite.
std::string FormatCount(double count);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_NUMBER_H_
