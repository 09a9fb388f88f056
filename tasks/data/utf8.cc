// Well-formed sequences by the table of the Unicode standard (3.9, D92).
#include "tasks/data/utf8.h"

#include <cstring>

namespace cloze {

int64_t CountInvalidUtf8(absl::string_view text) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data());
  const int64_t n = text.size();
  int64_t invalid = 0;
  for (int64_t i = 0; i < n;) {
    uint64_t word = 0;
    if (i + 8 <= n && (std::memcpy(&word, s + i, 8), (word & 0x8080808080808080) == 0)) {
      i += 8;
      continue;
    }
    const unsigned char lead = s[i];
    const int length = lead < 0x80   ? 1
                       : lead < 0xC2 ? 0
                       : lead < 0xE0 ? 2
                       : lead < 0xF0 ? 3
                       : lead < 0xF5 ? 4
                                     : 0;
    bool valid = length > 0 && i + length <= n;
    for (int k = 1; valid && k < length; ++k) {
      const unsigned char low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const unsigned char high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      valid = s[i + k] >= low && s[i + k] <= high;
    }
    invalid += !valid;
    i += valid ? length : 1;
  }
  return invalid;
}

}  // namespace cloze
