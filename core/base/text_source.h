// The texts that vocabularies and word vectors are learned from, one after another.
#ifndef CLOZE_CORE_BASE_TEXT_SOURCE_H_
#define CLOZE_CORE_BASE_TEXT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/charset.h"
#include "core/base/status.h"

namespace cloze {

class TextSource {
 public:
  virtual ~TextSource() = default;
  // Reads the next text, or piece of a long one, into *text. Returns false at the end.
  virtual absl::StatusOr<bool> Next(std::string* text) = 0;
  // The characters that end the last text: "\n", or "" after a piece that goes on.
  virtual absl::string_view end() const = 0;
  // Number of the line of the file at which the last text begins, from 1.
  virtual int64_t line() const = 0;
  // Bytes of the file read so far, as they are stored.
  virtual int64_t position() const = 0;
};

// Opens a file; "-" is standard input.
using OpenTexts = std::function<absl::StatusOr<std::unique_ptr<TextSource>>(const std::string&)>;

// Opens a text file: each line is a text. Errors of LineReader.
absl::StatusOr<std::unique_ptr<TextSource>> OpenLines(const std::string& path);
// OpenLines for a file whose encoding is `fallback` where it does not tell, see TextDecoder.
absl::StatusOr<std::unique_ptr<TextSource>> OpenEncodedLines(
    const std::string& path, Charset fallback);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_TEXT_SOURCE_H_
