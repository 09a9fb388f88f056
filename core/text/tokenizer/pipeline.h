// The stages of a tokenizer. Added tokens are found in the raw text. The text between them is
// normalized by steps, if there are any, and then further added tokens are found in it. The rest is
// cut into words, each word is normalized and split into subwords, and special tokens are put
// around the result. Words are cut before they are normalized, so that their ids can be cached by
// their bytes.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/text/tokenizer/text_step.h"
#include "core/text/tokenizer/tokenizer_data.h"
#include "core/text/tokenizer/trie.h"

namespace cloze {

// Tokens that are recognised in a text before it is cut into words: "[MASK]", "<mask>".
class AddedTokens {
 public:
  // A token in the text. If none is found, id is -1 and both spans are empty, at text.size().
  struct Match {
    Span span;  // bytes, with the white space of lstrip and rstrip
    int32_t id = -1;
    Span token;  // without it
  };

  struct Token {
    std::string text;  // not empty
    int32_t id;
    bool lstrip, rstrip;  // a match includes the white space to the left or right of the token
    bool single_word;     // only between characters that are no part of a word, as \b in a regex
  };

  AddedTokens() = default;
  explicit AddedTokens(std::vector<Token> tokens);
  bool empty() const { return tokens_.empty(); }
  // Returns the leftmost token at or after `from`; of several that start there, the longest. Its
  // span begins at `done` or later if the token takes white space on its left.
  Match Find(absl::string_view text, size_t from, size_t done) const;

 private:
  std::vector<Token> tokens_;
  Trie trie_;  // of indices of tokens_
  std::array<bool, 256> starts_ = {};
  std::vector<char> first_bytes_;
};

// Calls on_text(begin, end) for each part of `text` between tokens, and on_token(match). A token
// that begins with white space may overlap the white space that the token before it takes; if it
// takes white space on its left, it is dropped when nothing of it is left.
template <typename OnText, typename OnToken>
void ForEachPart(
    const AddedTokens& added, absl::string_view text, OnText on_text, OnToken on_token) {
  for (size_t from = 0, done = 0; from < text.size();) {
    const AddedTokens::Match match = added.Find(text, from, done);
    const auto end = static_cast<size_t>(match.span.begin);
    if (done < end) on_text(done, end);
    if (match.span.begin < match.span.end) on_token(match);
    from = match.token.end;
    done = match.span.end;
  }
}

// Receives a word at bytes [begin, end) of a raw text. With `prefixed`, the pre-tokenizer's prefix
// is put in front of its normal form; such a word may have no bytes.
using WordSink = absl::FunctionRef<void(size_t begin, size_t end, bool prefixed)>;

// A token and the bytes of the normalized word that it covers.
struct Subword {
  int32_t id = 0;
  int32_t begin = 0, end = 0;
};

// Empties scratch memory of a thread, and frees it if a long word has made it large.
template <typename Scratch>
void ClearScratch(Scratch* scratch) {
  constexpr size_t kKept = 1 << 16;
  if (scratch->capacity() > kKept) *scratch = Scratch();
  scratch->clear();
}

// Const methods of all stages are thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Appends the normal form of a raw word to *out. May stop when *out exceeds `max_bytes`. If
  // `source` is given, resizes it to out->size(), each new element being the index of the code
  // point in `raw` that the byte comes from.
  virtual void Append(absl::string_view raw, size_t max_bytes, std::string* out,
      std::vector<int32_t>* source) const = 0;
  // True if characters of `raw` may change places, so that words have to be cut afterwards.
  virtual bool MovesCharacters(absl::string_view) const { return false; }
};

// The start of a part of a text.
struct WordContext {
  size_t start = 0;    // so many of its first bytes come from byte 0 of the raw text
  bool given = false;  // it is, or belongs to, a word that the caller has given
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Calls `sink` for each word of `text` in order.
  virtual void Split(absl::string_view text, WordContext context, WordSink sink) const = 0;
  // True if words end at white space only, and may hold punctuation and many words of scripts
  // without spaces.
  virtual bool cuts_only_spaces() const { return false; }
  // True if Split() reads WordContext::start.
  virtual bool needs_start() const { return false; }
  // Returns the text in front of prefixed words.
  virtual absl::string_view prefix() const { return ""; }
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  // Sets *pieces to the subwords of a normalized word.
  virtual void Split(absl::string_view word, std::vector<Subword>* pieces) const = 0;
  // All normalized words with more bytes than this have the same pieces.
  virtual size_t max_word_bytes() const { return std::numeric_limits<size_t>::max(); }
  // True if `token` continues the word of the token before it. In scripts without spaces each token
  // of Unigram is a word.
  virtual bool ContinuesWord(absl::string_view token) const = 0;
  // Appends the decoded form of `token`; `first`: it is the first token of the text. One token
  // alone may not be valid UTF-8.
  virtual void AppendDecoded(absl::string_view token, bool first, std::string* text) const = 0;
  // True if a token `id` stands for the text that it covers, and not for the token of this id.
  virtual bool ShowsText(int32_t) const { return false; }
  // Returns `token` as shown to people; not always valid UTF-8.
  virtual std::string Show(absl::string_view token) const { return std::string(token); }
};

// The tokens around and between texts, and the spans of tokens that hold spaces.
struct PostProcessor {
  struct Item {
    int32_t id = -1;   // a special token, or
    int text = -1;     // the first (0) or second (1) text
    int32_t type = 0;  // token type id
  };
  std::vector<Item> single, pair;
  bool trims_spans = false;        // spans leave out the white space of a token, ...
  bool keeps_first_space = false;  // ... but not one space at the start of the text
};

struct Pipeline {
  AddedTokens added;
  TextSteps steps;
  bool steps_if_moved = false;  // only texts in which the normalizer moves characters need them
  AddedTokens added_normal;     // found in what the steps return
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;  // may refer to the normalizer
  std::unique_ptr<const SubwordModel> model;
  PostProcessor post;

  // If false, a raw text between tokens of `added` is cut into words as it is.
  bool NormalizesText(absl::string_view raw) const {
    if (steps_if_moved) return normalizer->MovesCharacters(raw);
    return !steps.empty() || !added_normal.empty();
  }
  // Sets *text to the result of the steps on raw text; if `tracked`, also its sources.
  void NormalizeText(absl::string_view raw, bool tracked, NormalText* text) const;
  // Returns the context of the part of a normalized text that begins at byte `from`; `begin`: where
  // the normalized text begins in the raw text.
  static WordContext ContextOf(const NormalText& normal, size_t from, size_t begin, bool given);
  // Sets *word to the normal form of a raw word, and *source as Normalizer does.
  void Normalize(absl::string_view raw, bool prefixed, std::string* word,
      std::vector<int32_t>* source = nullptr) const;
};

// Sets BERT's normalizer and pre-tokenizer. Words end at white space, punctuation and (by option)
// at ideographs; their normal form is cleaned, lower-cased and stripped of accents.
void SetBertText(const NormalizerOptions& options, Pipeline* pipeline);
// Returns BERT's normalizer for whole texts: it orders marks across characters, and added tokens
// can be found in the normal form. The stages of SetBertText do not change that.
TextSteps MakeBertSteps(const NormalizerOptions& options);

// Sets the text stages of GPT-2 and RoBERTa. They treat invalid UTF-8 as U+FFFD and cut text by
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Given words and, with `add_prefix_space`, texts get a space in front unless they have one.
void SetByteLevelText(bool add_prefix_space, Pipeline* pipeline);

inline constexpr absl::string_view kMetaspace = "\xE2\x96\x81";  // U+2581

// How a text is cut: first at white space, which is dropped; around punctuation, each character of
// which stays alone; then before each space, which becomes U+2581.
struct MetaspaceOptions {
  enum class Prepend { kAlways, kFirst, kNever };
  bool cuts_spaces = false, cuts_punctuation = false;
  bool split = true;                   // cut before spaces
  Prepend prepend = Prepend::kAlways;  // a space before each part, only before the text, or never
};

// Sets the text stages of SentencePiece: spaces become U+2581, and words are cut before it. The
// start of a text is that of the raw text, or of a given word.
void SetMetaspaceText(const MetaspaceOptions& options, Pipeline* pipeline);

// Byte-level tokens spell each byte as one printable character: 0x21 ... 0x7E, 0xA1 ... 0xAC and
// 0xAE ... 0xFF as themselves, the others as U+0100 and following.
char32_t ByteCharacter(uint8_t byte);
// Appends the spelling of `bytes`.
void AppendByteSpelling(absl::string_view bytes, std::string* out);
// Returns the bytes that a token spells. Keeps characters that spell no byte (special tokens).
std::string BytesOfToken(absl::string_view token);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_
