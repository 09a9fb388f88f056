// Turns UTF-8 text into token ids, with offsets into the user's bytes, and ids into text.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

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

// The part of a long text that is kept: its head, its tail, or both (a quarter from the head, the
// rest from the tail).
enum class Keep { kHead, kTail, kHeadTail };

// Returns how many of `count` kept tokens are taken from the head of the text.
int64_t FirstKept(int64_t count, Keep keep);

// Truncates to at most `max_length` tokens like Hugging Face's `longest_first`. Special tokens
// around the texts are kept, even if they alone exceed `max_length`. Returns the number of tokens
// removed.
int64_t Truncate(Encoding* encoding, int64_t max_length, Keep keep = Keep::kHead);

// Ids of the special tokens by role; -1 if the vocabulary has none.
struct SpecialIds {
  int32_t pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
  std::array<int32_t, 5> All() const { return {pad, unk, cls, sep, mask}; }
};

// Produces the same ids as Hugging Face's tokenizers. Const methods are thread-safe.
class Tokenizer {
 public:
  // Checks `data` with CheckTokens and builds its pipeline.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      TokenizerData data, const TokenOrigin& origin = {});

  // Encodes a text, with special tokens around it if `special`. Recognises those inside it.
  Encoding Encode(absl::string_view text, bool special = true) const;
  Encoding EncodePair(absl::string_view a, absl::string_view b) const;
  // Encodes a text that is split into words. Offsets are relative to each word. Words without
  // tokens (spaces, control characters) do not occur in the result.
  Encoding EncodeWords(absl::Span<const std::string> words, bool special = true) const;
  // Appends the ids of `text`, without special tokens around it: fast, no offsets.
  void AppendIds(absl::string_view text, std::vector<int32_t>* ids) const;
  // Returns the text of `ids` as valid UTF-8. Skips special tokens and unknown ids.
  std::string Decode(absl::Span<const int32_t> ids) const;

  // For all of these, 0 <= id < vocab_size().
  int32_t vocab_size() const { return static_cast<int32_t>(data_.tokens.size()); }
  const std::string& token(int32_t id) const { return data_.tokens[id]; }
  bool is_special(int32_t id) const { return is_special_[id]; }
  // True if the token continues the word of the token before it.
  bool ContinuesWord(int32_t id) const { return pipeline_.model->ContinuesWord(token(id)); }
  // True if words end at white space only (see PreTokenizer).
  bool cuts_only_spaces() const { return pipeline_.pre_tokenizer->cuts_only_spaces(); }
  // Returns the token as shown to people: "##s", or the characters that a byte-level token spells.
  std::string TokenText(int32_t id) const;

  // Returns the id of a token, or -1.
  int32_t id(absl::string_view token) const;
  const SpecialIds& special() const { return special_; }
  const TokenizerData& data() const { return data_; }
  // The part of long texts that is kept unless a task says otherwise.
  Keep usual_keep() const { return data_.truncates_left ? Keep::kTail : Keep::kHead; }

  // Adds everything that determines ids to a cache key.
  void AddToKey(Hasher* key) const;
  // True if both turn every text into the same ids: same tokens, special ones included, and same
  // rules.
  bool SameIds(const Tokenizer& other) const;

  Tokenizer(const Tokenizer&) = delete;

 private:
  Tokenizer(TokenizerData data, TokenIds ids);

  TokenizerData data_;
  TokenIds ids_;  // of data_.tokens
  SpecialIds special_;
  std::vector<bool> is_special_;  // by id
  Pipeline pipeline_;
  uint32_t serial_;  // distinguishes tokenizers in the cache of a thread
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_
