// Numbers in the files of users.
#ifndef CLOZE_CORE_BASE_DECIMAL_H_
#define CLOZE_CORE_BASE_DECIMAL_H_

#include <cmath>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace cloze {

// Parses a finite number in decimal notation, "-1.5", "+2", ".5" or "3e-4", with or without spaces
// around it. False for anything else: "0x10", "inf", "nan", "1,5", "3 kg", "1e999". Independent of
// the locale.
template <typename Float>
bool ParseDecimal(absl::string_view text, Float* value) {
  if (text.find_first_not_of("0123456789+-.eE \t\r\n\v\f") != text.npos) return false;
  bool parsed = false;
  if constexpr (std::is_same_v<Float, float>) {
    parsed = absl::SimpleAtof(text, value);
  } else {
    parsed = absl::SimpleAtod(text, value);
  }
  return parsed && std::isfinite(*value);
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_DECIMAL_H_
