// From UTF-8 text to token ids, with offsets into the user's own bytes.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/text/tokenizer/encoding.h"
#include "core/text/tokenizer/normalizer.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

// Ids of the special tokens, looked up by role; -1 when the vocabulary has none.
struct SpecialIds {
  int32_t pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
};

// BERT's normaliser and WordPiece, or RoBERTa's byte-level BPE, as Hugging Face has them. Const
// methods are thread-safe.
class Tokenizer {
 public:
  // Checks `data` and builds its tokenizer. `origin` names the vocabulary in messages; with `lines`
  // its line numbers are ids + 1.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      TokenizerData data, const std::string& origin, bool lines);
  // From tokens in the order of their ids; special tokens are recognised by spelling: <pad> or
  // [PAD], <unk>, <class> or [CLS], <sep>, <mask>.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      std::vector<std::string> tokens, NormalizerOptions options);

  // A byte-level BPE from tokens in the order of their ids, <s>, <pad>, </s>, <unk> and <mask>
  // among them, and the pairs of ids that are merged, the most important first.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> CreateBpe(
      std::vector<std::string> tokens, std::vector<std::pair<int32_t, int32_t>> merges);

  // Tokens of `text`, with <class> first and <sep> last if `special`.
  Encoding Encode(absl::string_view text, bool special = true) const;
  // <class> a <sep> b <sep>; byte-level: <s> a </s></s> b </s>, all of type 0.
  Encoding EncodePair(absl::string_view a, absl::string_view b) const;
  // Tokens of words that are split already: `words` of the result indexes `words`, offsets are
  // inside each word. A word without tokens (only blanks or control characters) has none in the
  // result. Byte-level: every word counts as one behind a blank.
  Encoding EncodeWords(absl::Span<const std::string> words, bool special = true) const;
  // Appends the ids of `text` without special tokens: the fast path, no offsets.
  void AppendIds(absl::string_view text, std::vector<int32_t>* ids) const;

  // The text of ids: pieces joined, "##" removed, special tokens skipped; byte-level: their bytes,
  // made valid UTF-8.
  std::string Decode(absl::Span<const int32_t> ids) const;

  int32_t vocab_size() const;
  const std::string& token(int32_t id) const;  // 0 <= id < vocab_size()
  int32_t id(absl::string_view token) const;   // -1 when there is none
  bool is_special(int32_t id) const;
  // True if the token continues the word of the token before it.
  bool ContinuesWord(int32_t id) const;
  // The text of one token for people: "##s", or the characters that a byte-level token spells.
  std::string TokenText(int32_t id) const;
  const SpecialIds& special() const;
  const NormalizerOptions& options() const;
  bool byte_level() const;
  const TokenizerData& data() const;
  // Whatever decides ids besides tokens, special tokens and options; for cache keys.
  std::string other_rules() const;
  // Do both have the same tokens and other_rules()?
  bool SameIds(const Tokenizer& other) const;

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

 private:
  struct Rep;
  explicit Tokenizer(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_
