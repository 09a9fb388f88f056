// WordPiece: repeatedly takes the longest token that matches.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/tokenizer/schemes.h"
#include "core/text/tokenizer/trie.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr absl::string_view kPrefix = "##";  // of tokens that continue a word

bool Continues(absl::string_view token) {
  return token.size() > kPrefix.size() && absl::StartsWith(token, kPrefix);
}

class WordPiece final : public SubwordModel {
 public:
  WordPiece(absl::Span<const std::string> tokens, int32_t unknown, int64_t max_chars)
      : unknown_(unknown), max_chars_(max_chars) {
    std::vector<Trie::Entry> whole, continuing;
    for (const std::string& token : tokens) {
      whole.push_back({token, static_cast<int32_t>(whole.size())});
      if (Continues(token))
        continuing.push_back({whole.back().key.substr(kPrefix.size()), whole.back().id});
    }
    whole_ = Trie(std::move(whole));
    continuing_ = Trie(std::move(continuing));
  }

  void Split(absl::string_view word, std::vector<Subword>* pieces) const override {
    pieces->clear();
    const auto unknown = [&] {
      pieces->assign(1, {unknown_, 0, static_cast<int32_t>(word.size())});
    };
    if (word.size() > max_chars_ && CountCodePoints(word) > max_chars_) return unknown();
    for (size_t begin = 0; begin < word.size();) {
      Subword best{-1, static_cast<int32_t>(begin), static_cast<int32_t>(begin)};
      const Trie& trie = begin == 0 ? whole_ : continuing_;
      const Trie::Node* node = trie.First(word[begin]);
      for (size_t end = begin + 1; node != nullptr; ++end) {
        if (node->id >= 0) best.id = node->id, best.end = end;
        node = end < word.size() ? trie.Child(*node, word[end]) : nullptr;
      }
      if (best.id < 0) return unknown();
      pieces->push_back(best);
      begin = best.end;
    }
  }

  size_t max_word_bytes() const override { return 4 * max_chars_; }

  bool ContinuesWord(absl::string_view token) const override {
    return absl::StartsWith(token, kPrefix);
  }

  // Puts a space between words and removes "##".
  void AppendDecoded(absl::string_view token, bool first, std::string* text) const override {
    if (Continues(token)) {
      token.remove_prefix(kPrefix.size());
    } else if (!first) {
      *text += ' ';
    }
    absl::StrAppend(text, token);
  }

 private:
  Trie whole_, continuing_;  // all tokens; those with the prefix, without it
  const int32_t unknown_;
  const int64_t max_chars_;
};

}  // namespace

std::shared_ptr<const SubwordScheme> BertScheme(const NormalizerOptions& options) {
  auto scheme = std::make_shared<WordPieceScheme>();
  scheme->options = options;
  return scheme;
}

void WordPieceScheme::SetStages(
    const TokenizerData& data, const TokenIds&, int32_t unknown, Pipeline* pipeline) const {
  SetBertText(options, pipeline);
  pipeline->steps = MakeBertSteps(options);
  pipeline->steps_if_moved = data.normalized.empty();
  pipeline->model = std::make_unique<WordPiece>(ModelTokens(data), unknown, max_word_chars);
}

std::string WordPieceScheme::Key(const TokenizerData& data) const {
  // The key of a kept tokenizer.json has a list of merges and flags, here none and the usual ones.
  if (!data.rules.empty()) return absl::StrCat(data.rules, kMergesHead, "01");
  std::string key;
  if (max_word_chars != WordPieceScheme().max_word_chars)
    absl::StrAppend(&key, " | longest word ", max_word_chars);
  if (data.model_tokens > 0) absl::StrAppend(&key, " | model ", data.model_tokens);
  if (data.one_type) key += " | one type";
  for (const std::string& token : data.lstrip) absl::StrAppend(&key, " | lstrip ", token);
  for (const std::string& token : data.rstrip) absl::StrAppend(&key, " | rstrip ", token);
  return key;
}

}  // namespace cloze
