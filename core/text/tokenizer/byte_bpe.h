// Byte-level BPE, as GPT-2 and RoBERTa have it: text is cut into words with their leading blank,
// and the bytes of a word are merged pair by pair.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/text/tokenizer/wordpiece.h"

namespace cloze {

// Tokens spell each byte as one printable character: 0x21 ... 0x7E, 0xA1 ... 0xAC and 0xAE ... 0xFF
// as themselves, the others as U+0100 on.
char32_t ByteCharacter(uint8_t byte);
// Appends the spelling of bytes.
void AppendByteSpelling(absl::string_view bytes, std::string* out);
// The bytes that a token spells; characters that stand for no byte (those of special tokens) are
// kept as they are.
std::string BytesOfToken(absl::string_view token);

// End of the word that starts at text[at], by the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Bytes that are not UTF-8 count as U+FFFD.
size_t ByteWordEnd(absl::string_view text, size_t at);

// Calls f(begin, end) for each word of `text`; together they are all of it.
template <class F>
void ForEachByteWord(absl::string_view text, F f) {
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = ByteWordEnd(text, at);
    f(at, end);
  }
}

class ByteBpe {
 public:
  using Merge = std::pair<int32_t, int32_t>;  // ids of the left and the right token

  // `tokens` by id; `merges`, the most important first, whose joined spelling has to be a token.
  // `unknown`: id for bytes that are no token; -1: they are dropped, as Hugging Face does.
  ByteBpe(absl::Span<const std::string> tokens, absl::Span<const Merge> merges, int32_t unknown);

  // Sets *pieces to the tokens of a word's bytes. Of all pairs the one that comes first in `merges`
  // is merged, the leftmost of them. O(n log n).
  void Split(absl::string_view word, std::vector<Piece>* pieces) const;

 private:
  struct Target {
    int32_t rank, id;
  };
  struct Candidate;
  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::array<int32_t, 256> bytes_;
  std::unordered_map<uint64_t, Target> merges_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
