// What a tokenizer consists of, between its files and the Tokenizer: filled by the readers, taken
// by the writers.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/text/tokenizer/normalizer.h"

namespace cloze {

// Spellings of the special tokens; empty when unknown or absent.
struct SpecialNames {
  std::string pad, unk, cls, sep, mask;
};

struct TokenizerData {
  std::vector<std::string> tokens;  // by id
  std::vector<int32_t>
      added;  // ids of tokens that are recognised in raw text besides the special ones
  SpecialNames names;
  NormalizerOptions options;
  int64_t max_word_chars = 100;  // longer words are unknown
  // Byte-level BPE instead of WordPiece; then `options` and `max_word_chars` are without meaning.
  bool byte_level = false;
  std::vector<std::pair<int32_t, int32_t>>
      merges;  // ids of the left and right token, whose joined spelling is a token
  bool add_prefix_space = false;  // a text that does not begin with a blank gets one
  bool trim_offsets = true;       // blanks before a word are no part of its place ...
  bool trim_keeps_first =
      false;  // ... but for one at the start of the text, taken for the one that was put there
  bool drops_unknown = true;                // bytes that are no token are dropped, not unknown
  std::vector<std::string> lstrip, rstrip;  // added tokens that take the white space beside them
};

inline constexpr int64_t kMaxTokens = 10'000'000;
inline constexpr int64_t kMaxTokenBytes = 1024;
inline constexpr int64_t kMaxVocabBytes = int64_t{128} << 20;

// Reads one token a line.
absl::StatusOr<std::vector<std::string>> ReadVocabFile(const std::string& path);

// Reads a tokenizer.json; refuses components that are not BERT's or RoBERTa's.
absl::StatusOr<TokenizerData> ReadTokenizerJson(const std::string& path);

// Reads vocab.json and merges.txt of a byte-level BPE.
absl::Status ReadVocabAndMerges(
    const std::string& vocab, const std::string& merges, TokenizerData* data);
// Their content.
std::string VocabJson(const TokenizerData& data);
std::string MergesText(const TokenizerData& data);

// Takes the normaliser's options and, where `data` has none, the names of special tokens from a
// tokenizer_config.json. `normalizer` says whether the options are wanted.
absl::Status ReadTokenizerConfig(const std::string& path, bool normalizer, TokenizerData* data);

// Checks the tokens and fills the names that are empty: "[PAD]" or "<pad>" and so on. `origin` is
// the file for messages, where line = id + 1 unless `lines` is false. All but pad and mask must be
// there.
absl::Status CheckTokens(const std::string& origin, bool lines, TokenizerData* data);

// The three JSON files.
std::string TokenizerJson(const TokenizerData& data, const std::vector<int32_t>& special_ids);
std::string TokenizerConfigJson(const TokenizerData& data, int64_t max_length);
std::string SpecialTokensMapJson(const TokenizerData& data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
