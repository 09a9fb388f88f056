// The description of a tokenizer: read from files or learned, checked, and built into a Tokenizer.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <memory>
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

class SubwordScheme;  // core/text/tokenizer/schemes.h
// Returns BERT's: WordPiece.
std::shared_ptr<const SubwordScheme> BertScheme(const NormalizerOptions& options = {});

struct TokenizerData {
  std::vector<std::string> tokens;  // by id
  // N: only the first N tokens belong to the subword model; 0: all.
  size_t model_tokens = 0;
  std::shared_ptr<const SubwordScheme> scheme = BertScheme();
  SpecialNames names = {};
  std::vector<int32_t> added = {};  // ids of tokens found in raw text besides the special ones
  std::vector<std::string> lstrip = {},
                           rstrip = {},  // added tokens that take the white space beside them
      single_word = {};                  // added tokens that are not found inside words
  std::vector<int32_t> special = {};     // of `added`: not part of a decoded text
  std::vector<int32_t> normalized = {};  // of `added`: found after the text is normalized

  TextSteps steps = {};      // normalize whole texts; none for WordPiece
  Templates templates = {};  // empty: from make_templates
  // Null: those of the scheme. In any case GPT-2's if the class token is kEndOfText.
  Templates (*make_templates)(const std::string& cls, const std::string& sep) = nullptr;
  bool one_type = false;          // both texts of a pair have token type 0
  bool truncates_left = false;    // long texts lose their head (truncation_side: left)
  bool trim_offsets = false;      // spans leave out white space, ...
  bool trim_keeps_first = false;  // ... but not one space at the start of the text
  // The original tokenizer.json, and its rules that determine ids, kept when our writer cannot
  // reproduce the file; else empty.
  std::string json = "", rules = "";
};

// Returns the tokens of the model: without those that tokenizer.json only adds.
absl::Span<const std::string> ModelTokens(const TokenizerData& data);

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

// Checks all of *data, fills the empty `names` by spelling ("[PAD]" or "<pad>" and so on) and
// returns the ids. All special tokens but padding and mask are required.
absl::StatusOr<TokenIds> CheckTokens(const TokenOrigin& origin, TokenizerData* data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKENIZER_DATA_H_
