// Encodings of text files: which one a file has, and its text as UTF-8.
#ifndef CLOZE_CORE_BASE_CHARSET_H_
#define CLOZE_CORE_BASE_CHARSET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cloze {

// Latin-1 is ISO 8859-1; Windows-1252 has other characters at 0x80 to 0x9F. UTF-16 follows its byte
// order mark, and is little endian without one.
enum class Charset { kUtf8, kLatin1, kUtf16, kWindows1252 };

inline constexpr absl::string_view kUtf8Mark = "\xEF\xBB\xBF";

// Returns the name of the encoding that text, which is not UTF-8, probably has: "Windows-1252 or
// Latin-1", "KOI8-R", ...
absl::string_view LikelyEncoding(absl::string_view text);

// Returns why line `line` of a file is not UTF-8, with a guess of its encoding; "" if it is.
std::string NotUtf8(absl::string_view path, int64_t line, absl::string_view text);

// Returns UTF-8 text in `charset`; UTF-16 is little endian, without a mark. Characters that the
// charset lacks become "?" and are added to *lost.
std::string Encode(absl::string_view text, Charset charset, int64_t* lost);

// Converts a data file to lines of UTF-8. The file tells its encoding: a byte order mark and valid
// UTF-8 beyond ASCII are believed. `fallback` decides the rest. The result depends on the bytes
// alone, not on the parts in which they come.
class TextDecoder {
 public:
  explicit TextDecoder(Charset fallback) : fallback_(fallback) {}

  // First appends `bytes` to *out: UTF-16 as UTF-8, all else unchanged. Invalid UTF-16 becomes
  // U+FFFD. An incomplete character waits for the next call or, if `end`, becomes U+FFFD; so do the
  // first bytes until they tell if they are UTF-16.
  void Append(absl::string_view bytes, bool end, std::string* out);
  // True if Append changes nothing from now on.
  bool passes() const { return decided_ && !utf16_; }

  // Then converts line `number`, or a part of it. A line that is not UTF-8 becomes UTF-8 if
  // `fallback` is Latin-1 or Windows-1252; bytes without a character become U+FFFD. So does one
  // that is UTF-8 by chance, in a file where most lines are not.
  void Convert(int64_t number, std::string* line);
  // kData if more than one in 1,000 of `lines` lines was not UTF-8, and could not be converted.
  // Before the `end`, only if that is sure to be a wrong encoding.
  absl::Status Check(absl::string_view path, int64_t lines, bool end) const;

 private:
  bool Decide(bool end);
  void AppendUtf16(bool end, std::string* out);

  Charset fallback_;
  std::string rest_;  // bytes that Append has not written yet
  bool decided_ = false, utf16_ = false, big_endian_ = false;
  int64_t utf8_ = 0, other_ = 0;  // characters beyond ASCII in lines of UTF-8; other lines
  int64_t bad_ = 0, first_bad_ = 0, last_bad_ = 0;  // lines that cannot be converted
  std::string sample_;                              // of these
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CHARSET_H_
