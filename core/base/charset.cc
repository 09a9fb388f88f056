#include "core/base/charset.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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
constexpr size_t kHead = 4096;    // bytes of a line that tell if it is UTF-16
constexpr size_t kSample = 4096;  // bytes of lines that tell their encoding

bool IsAscii(absl::string_view text) {
  return absl::c_none_of(text, [](char c) { return (c & 0x80) != 0; });
}

// Returns the end of a message about text in the encoding `likely`: how to convert it.
std::string Remedy(absl::string_view likely) {
  return absl::StrCat(": expected UTF-8 (convert the file with iconv",
      likely == kLatin ? ", or set its encoding: WINDOWS1252)" : ")");
}

}  // namespace

// Looks at the bytes above 127. Latin scripts have few. Russian lower-case letters are 0xE0 to 0xFF
// in Windows-1251 and 0xC0 to 0xDF in KOI8-R.
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

std::string NotUtf8(absl::string_view path, int64_t line, absl::string_view text) {
  if (IsUtf8(text)) return "";
  const absl::string_view likely = LikelyEncoding(text);
  return absl::StrCat(QuotePath(path), ":", line, ": not UTF-8, perhaps ", likely, Remedy(likely));
}

std::string Encode(absl::string_view text, Charset charset, int64_t* lost) {
  if (charset == Charset::kUtf8 || (charset != Charset::kUtf16 && IsAscii(text)))
    return std::string(text);
  std::string out;
  const auto unit = [&](char32_t value) {
    out += static_cast<char>(value & 0xFF);
    out += static_cast<char>(value >> 8 & 0xFF);
  };
  const bool windows = charset == Charset::kWindows1252;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    at += c.size;
    const auto* const special =
        c.value < 0x80 ? std::end(kWindows) : absl::c_find(kWindows, c.value);
    if (charset == Charset::kUtf16 && c.value >= 0x10000) {
      unit(0xD800 + ((c.value - 0x10000) >> 10));
      unit(0xDC00 + ((c.value - 0x10000) & 0x3FF));
    } else if (charset == Charset::kUtf16) {
      unit(c.value);
    } else if (windows && special != std::end(kWindows)) {
      out += static_cast<char>(0x80 + (special - kWindows));
    } else if (c.value < 0x80 || (c.value < 0x100 && c.value >= (windows ? 0xA0 : 0x80))) {
      out += static_cast<char>(c.value);
    } else {
      out += '?';
      ++*lost;
    }
  }
  return out;
}

void TextDecoder::Append(absl::string_view bytes, bool end, std::string* out) {
  rest_.append(bytes.data(), bytes.size());
  if (!decided_ && !(decided_ = Decide(end))) return;
  if (utf16_) return AppendUtf16(end, out);
  out->append(rest_);
  rest_.clear();
}

// Sets utf16_ and big_endian_. Returns false if that takes more bytes.
bool TextDecoder::Decide(bool end) {
  constexpr absl::string_view kLittle = "\xFF\xFE", kBig = "\xFE\xFF", kUtf32("\xFF\xFE\0\0", 4);
  for (const absl::string_view mark : {kLittle, kBig, kUtf32, kUtf8Mark}) {
    if (!end && rest_.size() < mark.size() && absl::StartsWith(mark, rest_)) return false;
  }
  if (absl::StartsWith(rest_, kUtf8Mark)) fallback_ = Charset::kUtf8;
  big_endian_ = absl::StartsWith(rest_, kBig);
  utf16_ = big_endian_ || (absl::StartsWith(rest_, kLittle) && !absl::StartsWith(rest_, kUtf32));
  if (utf16_) rest_.erase(0, 2);
  if (utf16_ || fallback_ != Charset::kUtf16 || rest_.empty()) return true;
  // Without a mark, UTF-16 has a zero in or right after its first line, or is no UTF-8.
  const size_t newline = rest_.find('\n', rest_.find_first_not_of('\n'));
  const size_t needed = std::min(newline, kHead) + 2;
  const absl::string_view head = absl::string_view(rest_).substr(0, needed);
  const bool zero = absl::StrContains(head, '\0'), whole = end || rest_.size() >= needed;
  utf16_ = zero || (whole && CountInvalidUtf8(head) > (newline < kHead ? 1 : 3));
  return zero || whole;
}

void TextDecoder::AppendUtf16(bool end, std::string* out) {
  const auto unit = [&](size_t at) -> char32_t {
    const unsigned char first = rest_[at], second = rest_[at + 1];
    return big_endian_ ? first << 8 | second : second << 8 | first;
  };
  size_t at = 0;
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

void TextDecoder::Convert(int64_t number, std::string* line) {
  if (utf16_ || IsAscii(*line)) return;
  const bool valid = IsUtf8(*line);
  if (valid) utf8_ += absl::c_count_if(*line, [](char c) { return (c & 0xC0) == 0xC0; });
  if (!valid) ++other_;
  const bool windows = fallback_ == Charset::kWindows1252;
  if (windows || fallback_ == Charset::kLatin1) {
    if (valid && utf8_ >= other_) return;
    std::string text;
    for (const unsigned char c : *line) {
      const bool special = windows && c >= 0x80 && c < 0xA0;
      const char32_t mapped = special ? kWindows[c - 0x80] : c;
      AppendUtf8(mapped == 0 && special ? kReplacementCharacter : mapped, &text);
    }
    *line = std::move(text);
  } else if (!valid) {
    if (std::exchange(last_bad_, number) != number && ++bad_ == 1) first_bad_ = number;
    if (sample_.size() < kSample) sample_.append(*line, 0, kSample);
  }
}

absl::Status TextDecoder::Check(absl::string_view path, int64_t lines, bool end) const {
  if (bad_ * 1000 <= lines || (!end && (bad_ < 1000 || bad_ * 10 < lines))) return absl::OkStatus();
  const absl::string_view likely = LikelyEncoding(sample_);
  return Error(Exit::kData, QuotePath(path), ":", first_bad_, ": not UTF-8, perhaps ", likely, "; ",
      bad_, " of ", end ? "" : "the first ", Counted(lines, "line"), " are not UTF-8",
      Remedy(likely));
}

}  // namespace cloze
