// See utf8.h.
#include "core/base/utf8.h"

namespace cloze {

int DecodeUtf8(absl::string_view s, uint32_t* cp) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char b = byte(0);
  if (b < 0x80) return *cp = b, 1;
  const int n = b >= 0xF0 && b < 0xF5 ? 4 : b >= 0xE0 && b < 0xF0 ? 3 : b >= 0xC2 && b < 0xE0 ? 2 : 0;
  if (n == 0 || s.size() < n) return 0;
  *cp = b & (0xFF >> (n + 1));
  for (int i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *cp = *cp << 6 | (byte(i) & 0x3F);
  }
  static constexpr uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  return *cp < kMin[n] || *cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000) ? 0 : n;
}

}  // namespace cloze
