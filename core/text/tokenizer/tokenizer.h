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
#include "core/text/tokenizer/normalizer.h"

namespace cloze {

struct TokenizerData;

// Half-open range.
struct Span {
  int64_t begin = 0, end = 0;
};

// The tokens of a text, side by side. `bytes` are offsets into the text as it was given (also when
// it is not valid UTF-8), `chars` the same in code points (a maximal invalid sequence counts as
// one, as Python's errors="replace"). `words` counts the words from 0, for each text of a pair anew
// (or indexes the given words). Special tokens that were put around the text have {0, 0} and word
// -1; those that stand in the text have their place and a word of their own. `types` is 1 for the
// second text of a pair.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  std::vector<int32_t> words;
  std::vector<Span> bytes, chars;
};

// Which tokens of a text that is too long are kept: the first, the last, or a quarter first and
// three quarters last.
enum class Keep { kHead, kTail, kHeadTail };
// How many of the `count` tokens that are kept stand at the text's beginning.
int64_t FirstKept(int64_t count, Keep keep);

// Ids of the special tokens, looked up by role; -1 when the vocabulary has none.
struct SpecialIds {
  int32_t pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
};

// BERT's normaliser and WordPiece, or RoBERTa's byte-level BPE, as Hugging Face has them. Const
// methods are thread-safe.
class Tokenizer {
 public:
  // From a model folder (tokenizer.json, else vocab.txt, else vocab.json with merges.txt;
  // tokenizer_config.json), a tokenizer.json, or a lone vocab.txt, for which `lowercase` says
  // whether texts are lower-cased and stripped of accents. Special tokens that stand in a text are
  // recognised as such. kNoInput when nothing is there; kData with file and line for duplicates,
  // blank lines, tokens over 1 KiB and missing special tokens, and with the component's name for a
  // tokenizer.json that is neither BERT's nor RoBERTa's; kLimit for more than 10 million tokens or
  // 128 MB of them.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path, bool lowercase);
  // From tokens in the order of their ids; special tokens are recognised by spelling: <pad> or
  // [PAD], <unk>, <class> or [CLS], <sep>, <mask>.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      std::vector<std::string> tokens, NormalizerOptions options);

  // A byte-level BPE from tokens in the order of their ids, <s>, <pad>, </s>, <unk> and <mask>
  // among them, and the pairs of ids that are merged, the most important first.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> CreateBpe(
      std::vector<std::string> tokens, std::vector<std::pair<int32_t, int32_t>> merges);

  // Writes vocab.txt (byte-level: vocab.json and merges.txt), tokenizer.json, tokenizer_config.json
  // and special_tokens_map.json into an existing folder. max_length: what `model_max_length` says.
  // Each file is replaced whole.
  absl::Status Save(const std::string& directory, int64_t max_length) const;

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

  // Cuts to at most max_length tokens as Hugging Face's `longest_first` does, keeping the special
  // tokens around the texts (also when they alone are more than max_length). Returns how many
  // tokens were cut.
  int64_t Truncate(Encoding* encoding, int64_t max_length, Keep keep = Keep::kHead) const;

  // The text of ids: pieces joined, "##" removed, special tokens skipped; byte-level: their bytes,
  // made valid UTF-8.
  std::string Decode(absl::Span<const int32_t> ids) const;

  int32_t vocab_size() const;
  const std::string& token(int32_t id) const;  // 0 <= id < vocab_size()
  int32_t id(absl::string_view token) const;   // -1 when there is none
  bool is_special(int32_t id) const;
  // Does the token go on the word of the token before it?
  bool continues_word(int32_t id) const;
  const SpecialIds& special() const;
  const NormalizerOptions& options() const;
  bool byte_level() const;
  // Whatever decides ids besides tokens, special tokens and options; for cache keys.
  std::string other_rules() const;
  // Do both have the same tokens and other_rules()?
  bool SameIds(const Tokenizer& other) const;

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

 private:
  struct Rep;
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromData(
      const std::string& origin, bool lines, TokenizerData* data);
  explicit Tokenizer(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_H_
