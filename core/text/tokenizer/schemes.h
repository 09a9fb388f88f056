// The kinds of subword models, each with its settings and the text stages that it comes with.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_SCHEMES_H_
#define CLOZE_CORE_TEXT_TOKENIZER_SCHEMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/text/tokenizer/pipeline.h"
#include "core/text/tokenizer/tokenizer_data.h"

// All of them, in the order in which their vocabulary files are looked for. Each Name has here a
// NameScheme, in core/text/files a kNameFormat (formats.h), and in core/text/learning a kNameVocab
// (vocab_trainer.h).
#define CLOZE_SUBWORD_SCHEMES(X) \
  X(WordPiece)                   \
  X(ByteBpe)                     \
  X(Unigram)

namespace cloze {

// Const methods are thread-safe.
class SubwordScheme {
 public:
  virtual ~SubwordScheme() = default;
  // Returns the type of the model in tokenizer.json.
  virtual const char* type() const = 0;
  // Sets the normalizer, the pre-tokenizer and the model of `data`, which CheckTokens accepted,
  // with the `ids` of its tokens.
  virtual void SetStages(const TokenizerData& data, const TokenIds& ids, int32_t unknown,
      Pipeline* pipeline) const = 0;
  // Returns data.rules and the settings that determine ids, for the keys of caches and checkpoints.
  virtual std::string Key(const TokenizerData& data) const = 0;
  // Part of these keys, also of the kinds that have none.
  virtual NormalizerOptions normalizer_options() const { return {}; }
  // Returns kData if the settings do not fit the tokens.
  virtual absl::Status Check(const TokenOrigin&, const TokenIds&, const TokenizerData&) const {
    return absl::OkStatus();
  }
  // Returns the special tokens around texts unless files name some.
  virtual Templates UsualTemplates(const std::string& cls, const std::string& sep) const {
    return RobertaTemplates(cls, sep);
  }
  // True if texts are normalized also without data.steps.
  virtual bool normalizes_texts() const { return false; }
};

// Repeatedly takes the longest token that fits. Words with a part that matches no token become one
// unknown token. Time is linear in the length of the word times that of the longest token.
struct WordPieceScheme final : SubwordScheme {
  NormalizerOptions options = {};
  int64_t max_word_chars = 100;  // longer words are unknown

  const char* type() const override { return "WordPiece"; }
  void SetStages(const TokenizerData&, const TokenIds&, int32_t, Pipeline*) const override;
  std::string Key(const TokenizerData& data) const override;
  Templates UsualTemplates(const std::string& cls, const std::string& sep) const override {
    return BertTemplates(cls, sep);
  }
  NormalizerOptions normalizer_options() const override { return options; }
  bool normalizes_texts() const override { return true; }
};

// Repeatedly applies the first merge of the list that fits, at its leftmost place, in O(n log n).
struct ByteBpeScheme final : SubwordScheme {
  std::vector<std::pair<int32_t, int32_t>> merges = {};  // ids of two tokens that join to a token
  bool add_prefix_space = false;  // a text that does not begin with a space gets one
  bool drops_unknown = true;      // bytes that are no token are dropped, else unknown, ...
  bool fuse_unknown = false;      // ... and adjacent ones are one token

  const char* type() const override { return "BPE"; }
  void SetStages(const TokenizerData&, const TokenIds&, int32_t, Pipeline*) const override;
  std::string Key(const TokenizerData& data) const override;
  absl::Status Check(const TokenOrigin&, const TokenIds&, const TokenizerData&) const override;
};

inline constexpr char kMergesHead[] = "#version: 0.2\n";
// Returns the text of merges.txt. Requires byte-level BPE.
std::string MergesText(const TokenizerData& data);

// SentencePiece's Unigram: the pieces with the greatest sum of scores; of equals, those whose last
// piece is the longest. A code point that is no piece is unknown, with a score 10 below the lowest.
// Adjacent unknown ones become one unknown token or, with byte_fallback, tokens "<0xNN>" if all of
// them exist. Time is linear in the length of the word times that of the longest piece.
struct UnigramScheme final : SubwordScheme {
  std::vector<double> scores = {};  // of the first tokens; the others are not in the model
  bool byte_fallback = false;
  MetaspaceOptions metaspace = {};

  const char* type() const override { return "Unigram"; }
  void SetStages(const TokenizerData&, const TokenIds&, int32_t, Pipeline*) const override;
  std::string Key(const TokenizerData& data) const override;
};

// Returns the settings of a tokenizer whose type() is that of `Scheme`.
template <typename Scheme>
const Scheme& SchemeOf(const TokenizerData& data) {
  return static_cast<const Scheme&>(*data.scheme);
}

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_SCHEMES_H_
