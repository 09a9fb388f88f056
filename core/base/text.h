// Text: UTF-8, numbers, suggestions for misspelt names.
#ifndef CLOZE_CORE_BASE_TEXT_H_
#define CLOZE_CORE_BASE_TEXT_H_

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cloze {

// Limits in specs, model folders and data files: number of labels of a task, bytes of a label.
inline constexpr int kMaxLabels = 10'000, kMaxLabelBytes = 1024;

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// A code point and the number of its bytes. Bytes that are not well-formed UTF-8 (overlong forms,
// surrogates and values beyond U+10FFFF too) decode as one U+FFFD for each maximal invalid
// sequence, like Python's errors="replace".
struct CodePoint {
  char32_t value = 0;
  int32_t size = 0;
  bool valid = true;
};

namespace internal {
CodePoint DecodeMultibyte(absl::string_view text, size_t at);
}  // namespace internal

// Returns the code point at text[at]. Requires at < text.size().
inline CodePoint CodePointAt(absl::string_view text, size_t at) {
  const unsigned char lead = text[at];
  if (lead < 0x80) return {lead, 1, true};
  return internal::DecodeMultibyte(text, at);
}

// Appends the UTF-8 form of a code point up to U+10FFFF.
void AppendUtf8(char32_t code_point, std::string* out);

// Returns `at` or, if text[at] continues a UTF-8 sequence, where that begins, at most 3 bytes
// before.
size_t Utf8Floor(absl::string_view text, size_t at);

// Returns the number of code points; each maximal invalid sequence counts as one.
int64_t CountCodePoints(absl::string_view text);

// Returns the number of bytes that belong to no well-formed sequence.
int64_t CountInvalidUtf8(absl::string_view text);
inline bool IsUtf8(absl::string_view text) { return CountInvalidUtf8(text) == 0; }

// True for control characters and for those that change the direction of text or end a line.
// Terminals and browsers obey them, so output escapes or replaces them.
bool MustEscape(char32_t c);

// Returns the name of the format of a file that begins with `bytes` and is not UTF-8 text ("gzip
// data", "UTF-16 text" ...); else "".
absl::string_view OtherFormat(absl::string_view bytes);
// Returns what to do with a file of such a format, or whose name has the extension `name`, such as
// ".xlsx": "save it as CSV UTF-8"; "" if there is no advice.
std::string RemedyOfFormat(absl::string_view name);

// Returns the name of a file without .gz, .xz or .zst at its end.
absl::string_view UnpackedName(absl::string_view path);

// Returns the shortest decimal that reads back as the same number of type T: "0.1", "1e-12", "nan",
// "inf". Independent of the locale.
template <typename T>
std::string Shortest(T value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

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

// Returns the double whose shortest decimal is that of `x`: 0.1 for 0.1f.
double Decimal(float x);

// Returns "1 text", "2 texts".
std::string Counted(int64_t n, absl::string_view noun);
// Returns "950", "12,345".
std::string WithCommas(int64_t n);
// Returns "45s", "12m03s", "3h05m", "2d07h"; "?" if negative or not finite.
std::string FormatDuration(double seconds);
// Returns "950", "12.3k", "4.56M"; "?" if not finite.
std::string FormatCount(double count);

// Returns "A, B or C". Requires a name.
std::string ListOr(absl::Span<const std::string> names);

// Returns the first 20 of `names`, quoted and separated by commas; "none" for no name.
std::string ListNames(absl::Span<const std::string> names);

// Returns `; did you mean "x"?` for the candidate nearest to `word` by case-insensitive edit
// distance (insert, delete, replace, swap of neighbours), or "" if none is near.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_TEXT_H_
