#include "core/base/charset.h"

#include "absl/strings/ascii.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace cloze {
namespace {

// Code points of the bytes 0x80 to 0x9F in Windows-1252; 0 where there is none.
// https://encoding.spec.whatwg.org/index-windows-1252.txt
constexpr char32_t kWindows[32] = {0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178};

bool IsHigh(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLow(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

constexpr absl::string_view kLatin = "Windows-1252 or Latin-1";

// Guesses the encoding of non-UTF-8 text from its bytes above 127. Latin scripts have few. Russian
// lower-case letters are 0xE0 to 0xFF in Windows-1251 and 0xC0 to 0xDF in KOI8-R.
absl::string_view LikelyEncoding(absl::string_view text) {
  int64_t ascii = 0, high = 0, symbols = 0, koi8 = 0;
  for (const unsigned char c : text) {
    ascii += absl::ascii_isalpha(c);
    high += c >= 0x80;
    symbols += c >= 0x80 && c < 0xC0;
    koi8 += c >= 0xC0 && c < 0xE0;
  }
  if (high <= ascii) return kLatin;
  if (symbols * 5 > high) return "GBK, Big5, Shift JIS or EUC";
  return koi8 * 2 > high ? "KOI8-R" : "Windows-1251";
}

}  // namespace

std::string NotUtf8(absl::string_view path, int64_t line, absl::string_view text) {
  if (IsUtf8(text)) return "";
  const absl::string_view likely = LikelyEncoding(text);
  const bool latin = likely == kLatin;
  return absl::StrCat(QuotePath(path), ":", line, ": not UTF-8, perhaps ", likely,
      ": expected UTF-8 (convert the file with iconv",
      latin ? ", or set encoding: WINDOWS1252 in the spec, or with --set)" : ")");
}

void TextDecoder::Append(absl::string_view bytes, bool end, std::string* out) {
  if (encoding_ == Charset::kUtf8) {
    out->append(bytes.data(), bytes.size());
  } else if (encoding_ == Charset::kUtf16) {
    rest_.append(bytes.data(), bytes.size());
    AppendUtf16(end, out);
  } else {
    for (const unsigned char c : bytes) {
      const bool windows = encoding_ == Charset::kWindows1252 && c >= 0x80 && c < 0xA0;
      const char32_t mapped = windows ? kWindows[c - 0x80] : c;
      AppendUtf8(mapped == 0 && windows ? kReplacementCharacter : mapped, out);
    }
  }
}

void TextDecoder::AppendUtf16(bool end, std::string* out) {
  const auto unit = [&](size_t at) -> char32_t {
    const unsigned char first = rest_[at], second = rest_[at + 1];
    return big_endian_ ? first << 8 | second : second << 8 | first;
  };
  size_t at = 0;
  if (!started_ && rest_.size() >= 2) {
    started_ = true;
    big_endian_ = unit(0) == 0xFFFE;  // the mark, read as little endian
    if (unit(0) == 0xFEFF) at = 2;
  }
  while (at + 2 <= rest_.size()) {
    const char32_t high = unit(at);
    if (IsHigh(high) && at + 4 > rest_.size() && !end) break;
    const bool pair = IsHigh(high) && at + 4 <= rest_.size() && IsLow(unit(at + 2));
    const bool alone = !pair && (IsHigh(high) || IsLow(high));
    AppendUtf8(pair    ? 0x10000 + ((high - 0xD800) << 10) + (unit(at + 2) - 0xDC00)
               : alone ? kReplacementCharacter
                       : high,
        out);
    at += pair ? 4 : 2;
  }
  rest_.erase(0, at);
  if (end && !rest_.empty()) AppendUtf8(kReplacementCharacter, out), rest_.clear();
}

}  // namespace cloze
