// The text stages of GPT-2 and RoBERTa: words keep their leading blank, bytes stay as they are.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_BYTE_LEVEL_H_
#define CLOZE_CORE_TEXT_TOKENIZER_BYTE_LEVEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {

// Tokens spell each byte as one printable character: 0x21 ... 0x7E, 0xA1 ... 0xAC and 0xAE ... 0xFF
// as themselves, the others as U+0100 and following.
char32_t ByteCharacter(uint8_t byte);
// Appends the spelling of `bytes`.
void AppendByteSpelling(absl::string_view bytes, std::string* out);
// Returns the bytes that a token spells. Characters that spell no byte (in special tokens) are
// kept.
std::string BytesOfToken(absl::string_view token);

// Replaces each invalid UTF-8 sequence by U+FFFD.
class Utf8Normalizer final : public Normalizer {
 public:
  void Append(absl::string_view raw, size_t max_bytes, std::string* out,
      std::vector<int32_t>* source) const override;
};

// Cuts text by the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// where invalid UTF-8 counts as U+FFFD.
class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  // `add_prefix_space`: a text gets a blank in front unless it begins with one. Given words always
  // do.
  explicit ByteLevelPreTokenizer(bool add_prefix_space) : add_prefix_space_(add_prefix_space) {}
  void Split(absl::string_view text, bool given, WordSink sink) const override;
  absl::string_view prefix() const override { return " "; }

 private:
  const bool add_prefix_space_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_BYTE_LEVEL_H_
