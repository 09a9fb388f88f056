// Well-formed sequences by table 3-7 of the Unicode standard.
#include "core/base/utf8.h"

#include <cstring>

namespace cloze {

CodePoint internal::DecodeMultibyte(absl::string_view text, size_t at) {
  const unsigned char lead = text[at];
  if (lead < 0xC2 || lead > 0xF4) return {kReplacementCharacter, 1, false};
  const int32_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Bounds of the second byte exclude overlong forms, surrogates and values beyond U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t value = lead & (0x7F >> size);
  for (int32_t i = 1; i < size; ++i) {
    const unsigned char c = at + i < text.size() ? text[at + i] : 0;
    if (c < low || c > high) return {kReplacementCharacter, i, false};
    value = value << 6 | (c & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {value, size, true};
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return;
  }
  const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out->push_back(static_cast<char>((0xFF00 >> (tail + 1) & 0xFF) | (c >> (6 * tail))));
  for (int i = tail - 1; i >= 0; --i)
    out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F)));
}

int64_t CountCodePoints(absl::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); at += CodePointAt(text, at).size) ++count;
  return count;
}

int64_t CountInvalidUtf8(absl::string_view text) {
  int64_t invalid = 0;
  for (size_t at = 0; at < text.size();) {
    uint64_t word = 0x80;
    if (at + sizeof(word) <= text.size()) std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & 0x8080808080808080) == 0) {  // all ASCII
      at += sizeof(word);
      continue;
    }
    const CodePoint c = CodePointAt(text, at);
    if (!c.valid) invalid += c.size;
    at += c.size;
  }
  return invalid;
}

bool MustEscape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || (c >= 0x200E && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
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

}  // namespace cloze
