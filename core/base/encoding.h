// Encodings of text files other than UTF-8.
#ifndef CLOZE_CORE_BASE_ENCODING_H_
#define CLOZE_CORE_BASE_ENCODING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

// Latin-1 is ISO 8859-1; Windows-1252 has other characters at 0x80 to 0x9F. UTF-16 follows its byte
// order mark, and is little endian without one.
enum class Charset { kUtf8, kLatin1, kUtf16, kWindows1252 };

// Returns a note about the line `line` of a file if it is not UTF-8, with a guess; else "".
std::string NotUtf8(absl::string_view path, int64_t line, absl::string_view text);

// Converts bytes to UTF-8, in parts of any size.
class TextDecoder {
 public:
  explicit TextDecoder(Charset encoding) : encoding_(encoding) {}
  // Appends the UTF-8 form of `bytes` to *out. What is no character becomes U+FFFD; `end`: also an
  // incomplete character at the end, which otherwise waits for more bytes.
  void Append(absl::string_view bytes, bool end, std::string* out);

 private:
  void AppendUtf16(bool end, std::string* out);

  Charset encoding_;
  std::string rest_;  // UTF-16: bytes that are not decoded yet
  bool started_ = false, big_endian_ = false;
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_ENCODING_H_
