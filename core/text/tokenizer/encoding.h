// The tokens of a text, and how a long text is truncated.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_ENCODING_H_
#define CLOZE_CORE_TEXT_TOKENIZER_ENCODING_H_

#include <cstdint>
#include <vector>

namespace cloze {

// Half-open range.
struct Span {
  int64_t begin = 0, end = 0;
};

// Tokens of a text or of a pair of texts, as parallel arrays. A special token around the texts has
// word -1 and empty spans; one found inside a text is a word of its own.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;  // token type ids: 0, or 1 for the second text of a BERT pair
  std::vector<int32_t> words;  // word numbers: from 0 in each text, or the indices of given words
  std::vector<Span> bytes;     // offsets into the text as given, valid UTF-8 or not
  std::vector<Span> chars;     // the same in code points; see CodePoint for invalid UTF-8

  void Add(int32_t id, int32_t type, int32_t word, Span in_bytes, Span in_chars) {
    ids.push_back(id);
    types.push_back(type);
    words.push_back(word);
    bytes.push_back(in_bytes);
    chars.push_back(in_chars);
  }
};

// The part of a long text that is kept: its head, its tail, or a quarter head and the rest tail.
enum class Keep { kHead, kTail, kHeadTail };

// Returns how many of `count` kept tokens are taken from the head of the text.
int64_t FirstKept(int64_t count, Keep keep);

// Truncates to at most `max_length` tokens like Hugging Face's `longest_first`. Special tokens
// around the texts are kept, even if they alone exceed `max_length`. Returns the number of tokens
// removed.
int64_t Truncate(Encoding* encoding, int64_t max_length, Keep keep = Keep::kHead);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_ENCODING_H_
