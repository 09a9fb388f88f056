#include "core/base/text.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace cloze {
namespace {

// Longer names are not compared, which bounds the time for hostile input.
constexpr size_t kMaxNameLength = 100;

// Returns the edit distance, in which a swap of two neighbours is one edit.
int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

// Well-formed sequences by table 3-7 of the Unicode standard.
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

size_t Utf8Floor(absl::string_view text, size_t at) {
  const size_t min = at > 3 ? at - 3 : 0;
  while (at > min && at < text.size() && (text[at] & 0xC0) == 0x80) --at;
  return at;
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
  } kSignatures[] = {{{"\xFF\xFE\0\0", 4}, "UTF-32 text"}, {{"\0\0\xFE\xFF", 4}, "UTF-32 text"},
      {"\xFF\xFE", "UTF-16 text"}, {"\xFE\xFF", "UTF-16 text"}, {"\x1F\x8B", "gzip data"},
      {"\xFD\x37zXZ", "xz data"}, {"\x28\xB5\x2F\xFD", "zstd data"}, {"BZh91AY&SY", "bzip2 data"},
      {"PK\x03\x04", "a zip archive"}, {"version https://git-lfs", "a Git LFS pointer"},
      {"PAR1", "a Parquet file"}, {"ARROW1", "an Arrow file"}, {"%PDF-", "a PDF file"},
      {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "a file of an old Excel or Word"}};
  for (const auto& signature : kSignatures) {
    if (!absl::StartsWith(bytes, signature.bytes)) continue;
    if (signature.name != "a zip archive") return signature.name;
    const absl::string_view head = bytes.substr(0, 4096);
    if (absl::StrContains(head, "word/")) return "a Word document";
    const bool sheet = absl::StrContains(head, "xl/") || absl::StrContains(head, "spreadsheet") ||
                       absl::StrContains(head, "[Content_Types].xml");
    return sheet ? "an Excel workbook" : signature.name;
  }
  return "";
}

std::string RemedyOfFormat(absl::string_view name) {
  static constexpr struct {
    const char *names, *remedy;  // names end with a comma
  } kRemedies[] = {{"an Excel workbook,a file of an old Excel or Word,.xlsx,.xls,.ods,",
                       "save it in Excel as \"CSV UTF-8\""},
      {"a Word document,a PDF file,.docx,.pdf,", "save it as plain text"},
      {"a Parquet file,an Arrow file,.parquet,.arrow,.feather,",
          "write it as JSON lines, as with DuckDB's COPY or pandas' to_json(lines=True, "
          "orient=\"records\")"},
      {"UTF-16 text,", "convert it, or set its encoding: UTF16"},
      {"a Git LFS pointer,", "fetch it with git lfs pull"}, {".bz2,.zip,", "unpack it first"}};
  for (const auto& [names, remedy] : kRemedies) {
    if (!name.empty() && absl::StrContains(names, absl::StrCat(name, ","))) return remedy;
  }
  return "";
}

absl::string_view UnpackedName(absl::string_view path) {
  for (const char* packed : {".gz", ".xz", ".zst"}) {
    if (absl::EndsWithIgnoreCase(path, packed)) return path.substr(0, path.rfind('.'));
  }
  return path;
}

double Decimal(float x) {
  const std::string text = Shortest(x);
  double value = x;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string Counted(int64_t n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string WithCommas(int64_t n) {
  std::string out;
  const std::string digits = absl::StrCat(n);
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

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

std::string ListOr(absl::Span<const std::string> names) {
  const absl::Span<const std::string> others = names.first(names.size() - 1);
  return absl::StrCat(absl::StrJoin(others, ", "), others.empty() ? "" : " or ", names.back());
}

std::string ListNames(absl::Span<const std::string> names) {
  const auto quoted = [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "\"", Quote(name), "\"");
  };
  if (names.empty()) return "none";
  return absl::StrCat(absl::StrJoin(names.subspan(0, 20), ", ", quoted),
      names.size() > 20 ? absl::StrCat(", ... (", names.size(), ")") : "");
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxNameLength) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  std::string best;
  int best_distance = std::max<int>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxNameLength) continue;
    const std::string other = absl::AsciiStrToLower(candidate);
    int distance = EditDistance(lower, other);
    if (lower.size() >= 3 && absl::StartsWith(other, lower)) distance = std::min(distance, 1);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best.empty() ? "" : absl::StrCat("; did you mean \"", Quote(best), "\"?");
}

}  // namespace cloze
