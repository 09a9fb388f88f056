// See utf8.h.
#include "core/base/utf8.h"

namespace cloze {

int DecodeUtf8(absl::string_view s, uint32_t* cp) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char b = byte(0);
  if (b < 0x80) return *cp = b, 1;
  const int n = b >= 0xF0 && b < 0xF5   ? 4
                : b >= 0xE0 && b < 0xF0 ? 3
                : b >= 0xC2 && b < 0xE0 ? 2
                                        : 0;
  if (n == 0 || s.size() < n) return 0;
  *cp = b & (0xFF >> (n + 1));
  for (int i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *cp = *cp << 6 | (byte(i) & 0x3F);
  }
  static constexpr uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  return *cp < kMin[n] || *cp > 0x10FFFF || (*cp >= 0xD800 && *cp < 0xE000) ? 0 : n;
}

bool MustEscape(uint32_t cp) {
  return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x61C || (cp >= 0x200E && cp <= 0x200F) ||
         (cp >= 0x2028 && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
}

absl::string_view OtherFormat(absl::string_view bytes) {
  static constexpr struct {
    absl::string_view bytes, name;
  } kSignatures[] = {{"\xFF\xFE", "UTF-16 text"}, {"\xFE\xFF", "UTF-16 text"},
      {"\x1F\x8B", "gzip data"},
      {"\xFD"
       "7zXZ",
          "xz data"},
      {"\x28\xB5\x2F\xFD", "zstd data"}, {"BZh91AY&SY", "bzip2 data"},
      {"PK\x03\x04", "a zip archive"}};
  for (const auto& signature : kSignatures) {
    if (bytes.substr(0, signature.bytes.size()) == signature.bytes) return signature.name;
  }
  return "";
}

bool IsUtf8(absl::string_view s) {
  uint32_t cp = 0;
  for (int n = 0; !s.empty(); s.remove_prefix(n)) {
    if ((n = DecodeUtf8(s, &cp)) == 0) return false;
  }
  return true;
}

}  // namespace cloze
