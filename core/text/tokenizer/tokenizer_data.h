// The description of a tokenizer: read from files or learned, checked, and built into a Tokenizer.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "core/text/tokenizer/text_step.h"

namespace cloze {

struct NormalizerOptions {
  bool clean_text = true;     // drop control characters
  bool chinese_chars = true;  // ideographs are words of their own
  bool strip_accents = true;  // NFD, then drop nonspacing marks
  bool lowercase = true;
  bool operator==(const NormalizerOptions&) const = default;
};

// Spellings of the special tokens; empty if unknown or absent.
struct SpecialNames {
  std::string pad, unk, cls, sep, mask;
};

// BERT's WordPiece, RoBERTa's byte-level BPE and SentencePiece's Unigram; each with the text stages
// it comes with.
enum class SubwordKind { kWordPiece, kByteBpe, kUnigram };

// How a text is cut for Unigram: first at white space, which is dropped; around punctuation, each
// character of which stays alone; then before each space, which becomes U+2581.
struct MetaspaceOptions {
  enum class Prepend { kAlways, kFirst, kNever };
  bool cuts_spaces = false, cuts_punctuation = false;
  bool split = true;                   // cut before spaces
  Prepend prepend = Prepend::kAlways;  // a space before each part, only before the text, or never
};

// A special token, a first text (0) or a second text (1), with its token type id.
struct TemplateItem {
  std::string token = "";
  int text = -1;
  int32_t type = 0;
  bool operator==(const TemplateItem&) const = default;
};
// Special tokens around one text and around a pair.
struct Templates {
  std::vector<TemplateItem> single, pair;
  bool operator==(const Templates&) const = default;
};
// Return BERT's [CLS] A [SEP] B [SEP], and RoBERTa's <s> A </s></s> B </s>.
Templates BertTemplates(const std::string& cls, const std::string& sep);
Templates RobertaTemplates(const std::string& cls, const std::string& sep);
// Returns GPT-2's A B, without special tokens.
Templates BareTemplates();
// GPT-2's only special token.
inline constexpr char kEndOfText[] = "<|endoftext|>";

struct TokenizerData {
  SubwordKind kind = SubwordKind::kWordPiece;
  std::vector<std::string> tokens;  // by id
  SpecialNames names = {};
  std::vector<int32_t> added = {};  // ids of tokens found in raw text besides the special ones
  std::vector<std::string> lstrip = {},
                           rstrip = {},  // added tokens that take the white space beside them
      single_word = {};                  // added tokens that are not found inside words
  std::vector<int32_t> special = {};     // of `added`: not part of a decoded text
  std::vector<int32_t> normalized = {};  // of `added`: found after the text is normalized

  TextSteps steps = {};      // normalize whole texts; none for WordPiece
  Templates templates = {};  // empty: from make_templates
  // Null: BERT's for WordPiece, else RoBERTa's, or GPT-2's if the class token is kEndOfText.
  Templates (*make_templates)(const std::string& cls, const std::string& sep) = nullptr;
  bool one_type = false;        // both texts of a pair have token type 0
  bool truncates_left = false;  // long texts lose their head (truncation_side: left)
  // Spans leave out white space, but not one space at the start of the text. The other kinds than
  // byte-level BPE have that only if a tokenizer.json is kept.
  bool trim_offsets = true, trim_keeps_first = false;
  // The original tokenizer.json, and its rules that determine ids, kept when our writer cannot
  // reproduce the file; else empty.
  std::string json = "", rules = "";

  // WordPiece. The options are also part of the cache key of a byte-level BPE.
  NormalizerOptions options = {};
  int64_t max_word_chars = 100;  // longer words are unknown
  // N: only the first N tokens are pieces of words; 0: all. Byte-level BPE sets it only if a token
  // beyond them spells a byte.
  size_t model_tokens = 0;

  // Byte-level BPE.
  std::vector<std::pair<int32_t, int32_t>> merges = {};  // ids of two tokens that join to a token
  bool add_prefix_space = false;  // a text that does not begin with a space gets one
  bool drops_unknown = true;      // bytes that are no token are dropped, else unknown, ...
  bool fuse_unknown = false;      // ... and adjacent ones are one token

  // Unigram.
  std::vector<double> scores = {};  // of the first tokens; the others are not in the model
  bool byte_fallback = false;       // unknown characters become tokens "<0x00>" ... "<0xFF>"
  MetaspaceOptions metaspace = {};
};

// Returns the tokens of the model: without those that tokenizer.json only adds.
absl::Span<const std::string> ModelTokens(const TokenizerData& data);

// Returns the text of merges.txt.
std::string MergesText(const TokenizerData& data);

inline constexpr int64_t kMaxTokens = 10'000'000;

// Ids by token.
class TokenIds {
 public:
  // `tokens`, by id, must outlive this and must not move. Find() knows a token only after Add().
  explicit TokenIds(absl::Span<const std::string> tokens) : tokens_(tokens) {
    ids_.reserve(tokens.size());
  }
  // Adds the token `id` and returns it, or returns the id of an equal token that was added before.
  int32_t Add(int32_t id) { return ids_.try_emplace(tokens_[id], id).first->second; }
  // Returns the id of `token`, or -1.
  int32_t Find(absl::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  absl::Span<const std::string> tokens_;
  HashMap<absl::string_view, int32_t> ids_;
};

// Names a token in messages: its line of the vocabulary file, or its id.
struct TokenOrigin {
  std::string file = "the vocabulary";
  bool lines = false;       // line = id + 1
  std::string merges = "";  // the file of the merges, if it is another one
};

// Returns kData unless `token` is UTF-8 of 1 to 1024 bytes without line breaks.
absl::Status CheckToken(absl::string_view token);
// Returns kLimit if there are too many tokens, or too many bytes in all of them.
absl::Status CheckTokenCount(const std::string& file, int64_t tokens, int64_t bytes);

// Checks tokens and merges, fills the empty `names` by spelling ("[PAD]" or "<pad>" and so on) and
// returns the ids. All special tokens but padding and mask are required.
absl::StatusOr<TokenIds> CheckTokens(const TokenOrigin& origin, TokenizerData* data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
