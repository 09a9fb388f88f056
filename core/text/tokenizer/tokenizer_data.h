// The description of a tokenizer: read from files or learned, checked, and built into a Tokenizer.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

struct NormalizerOptions {
  bool clean_text = true;     // drop control characters
  bool chinese_chars = true;  // ideographs are words of their own
  bool strip_accents = true;  // NFD, then drop nonspacing marks
  bool lowercase = true;
};

// Spellings of the special tokens; empty if unknown or absent.
struct SpecialNames {
  std::string pad, unk, cls, sep, mask;
};

// BERT's WordPiece, or RoBERTa's byte-level BPE; each with the text stages it comes with.
enum class SubwordKind { kWordPiece, kByteBpe };

struct TokenizerData {
  SubwordKind kind = SubwordKind::kWordPiece;
  std::vector<std::string> tokens;  // by id
  SpecialNames names = {};
  std::vector<int32_t> added = {};  // ids of tokens found in raw text besides the special ones
  std::vector<std::string> lstrip = {},
                           rstrip = {};  // added tokens that take the white space beside them

  // WordPiece. The options are also part of the cache key of a byte-level BPE.
  NormalizerOptions options = {};
  int64_t max_word_chars = 100;  // longer words are unknown

  // Byte-level BPE.
  std::vector<std::pair<int32_t, int32_t>> merges = {};  // ids of two tokens that join to a token
  bool add_prefix_space = false;  // a text that does not begin with a blank gets one
  bool trim_offsets = true;       // spans leave out the blanks before a word, ...
  bool trim_keeps_first = false;  // ... but not a blank at the start of the text
  bool drops_unknown = true;      // bytes that are no token are dropped, else unknown
};

// Returns the text of merges.txt.
std::string MergesText(const TokenizerData& data);

inline constexpr int64_t kMaxTokens = 10'000'000;

// Ids by token. Keys are views of TokenizerData::tokens. Not a flat_hash_map: that is freed wrongly
// when an allocation failed while it grew.
using TokenIds = std::unordered_map<absl::string_view, int32_t, absl::Hash<absl::string_view>>;

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
