// Encodings of text files other than UTF-8.
#ifndef CLOZE_CORE_BASE_CHARSET_H_
#define CLOZE_CORE_BASE_CHARSET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace cloze {

// Latin-1 is ISO 8859-1; Windows-1252 has other characters at 0x80 to 0x9F. UTF-16 follows its byte
// order mark, and is little endian without one.
enum class Charset { kUtf8, kLatin1, kUtf16, kWindows1252 };

// Returns a message that line `line` of a file is not UTF-8, with a guess of its encoding; "" if
// `text` is UTF-8.
std::string NotUtf8(absl::string_view path, int64_t line, absl::string_view text);

// Converts bytes to UTF-8, in parts of any size.
class TextDecoder {
 public:
  explicit TextDecoder(Charset encoding) : encoding_(encoding) {}
  // Appends the UTF-8 form of `bytes` to *out; copies UTF-8 unchanged. Invalid characters become
  // U+FFFD. An incomplete last character waits for the next call or, if `end`, becomes U+FFFD.
  void Append(absl::string_view bytes, bool end, std::string* out);

 private:
  void AppendUtf16(bool end, std::string* out);

  Charset encoding_;
  std::string rest_;  // UTF-16: bytes that are not decoded yet
  bool started_ = false, big_endian_ = false;
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CHARSET_H_
