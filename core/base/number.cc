#include "core/base/number.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace cloze {

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e10) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 60) return absl::StrFormat("%ds", s);
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s / 3600 % 24);
}

std::string FormatCount(double count) {
  if (!std::isfinite(count)) return "?";
  if (count < 999.5) return absl::StrFormat("%.0f", count);
  if (count < 999500) return absl::StrFormat("%.3gk", count / 1e3);
  if (count < 999.5e6) return absl::StrFormat("%.3gM", count / 1e6);
  return absl::StrFormat("%.3gG", count / 1e9);
}

}  // namespace cloze
