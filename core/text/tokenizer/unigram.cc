// SentencePiece's Unigram: the pieces of a word with the greatest sum of scores.
#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/text/tokenizer/schemes.h"
#include "core/text/tokenizer/trie.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least score

class Unigram final : public SubwordModel {
 public:
  Unigram(
      const UnigramScheme& scheme, const TokenizerData& data, const TokenIds& ids, int32_t unknown)
      : scores_(scheme.scores), unknown_(unknown), unknown_token_(data.tokens[unknown]),
        unknown_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty),
        drops_first_(scheme.metaspace.prepend != MetaspaceOptions::Prepend::kNever) {
    std::vector<Trie::Entry> entries;
    for (size_t id = 0; id < scores_.size(); ++id)
      entries.push_back({data.tokens[id], static_cast<int32_t>(id)});
    trie_ = Trie(std::move(entries));
    for (int b = 0; b < 256; ++b) {
      const int32_t id = scheme.byte_fallback ? ids.Find(absl::StrFormat("<0x%02X>", b)) : -1;
      bytes_[b] = id < static_cast<int64_t>(scores_.size()) ? id : -1;
    }
  }

  void Split(absl::string_view word, std::vector<Subword>* pieces) const override;

  bool ShowsText(int32_t id) const override { return id == unknown_; }
  bool ContinuesWord(absl::string_view token) const override {
    return !absl::StartsWith(token, kMetaspace) && !IsUnspaced(CodePointAt(token, 0).value);
  }
  void AppendDecoded(absl::string_view token, bool first, std::string* text) const override {
    if (const int byte = ByteOf(token); byte >= 0) {
      text->push_back(static_cast<char>(byte));
    } else {
      *text += absl::StrReplaceAll(token, {{kMetaspace, first && drops_first_ ? "" : " "}});
    }
  }

 private:
  // The best pieces that end at a byte: the last of them, and their sum of scores.
  struct Best {
    double score;
    int32_t begin, id;  // begin < 0: none
  };

  // Returns the byte that a token of the byte fallback spells, or -1.
  int ByteOf(absl::string_view token) const {
    int byte = -1;
    for (int b = 0; b < 256 && bytes_[0] >= 0 && token.size() == 6 && token[0] == '<'; ++b) {
      if (token == absl::StrFormat("<0x%02X>", b)) byte = b;
    }
    return byte;
  }
  // Adds the unknown bytes [begin, end) of `word`, back to front.
  void AddUnknown(
      absl::string_view word, int32_t begin, int32_t end, std::vector<Subword>* pieces) const;

  const std::vector<double> scores_;
  const int32_t unknown_;
  const std::string unknown_token_;
  const double unknown_score_;
  const bool drops_first_;          // decoding drops the spaces of the first token
  std::array<int32_t, 256> bytes_;  // ids of the byte fallback; -1: none
  Trie trie_;
};

void Unigram::AddUnknown(
    absl::string_view word, int32_t begin, int32_t end, std::vector<Subword>* pieces) const {
  const absl::string_view part = word.substr(begin, end - begin);
  const auto id = [&](char byte) { return bytes_[static_cast<uint8_t>(byte)]; };
  const bool all = std::all_of(part.begin(), part.end(), [&](char byte) { return id(byte) >= 0; });
  if (!all || part == unknown_token_) return pieces->push_back({unknown_, begin, end});
  for (auto byte = part.rbegin(); byte != part.rend(); ++byte)
    pieces->push_back({id(*byte), begin, end});
}

void Unigram::Split(absl::string_view word, std::vector<Subword>* pieces) const {
  thread_local std::vector<Best> best;  // by the byte at which the pieces end
  const auto size = static_cast<int32_t>(word.size());
  pieces->clear();
  best.assign(size + 1, {0, -1, -1});
  const auto offer = [&](int32_t begin, int32_t end, int32_t id, double score) {
    Best& at = best[end];
    if (at.begin < 0 || score > at.score) at = {score, begin, id};
  };
  for (int32_t begin = 0, next; begin < size; begin = next) {
    next = begin + 1;
    while (next < size && (word[next] & 0xC0) == 0x80) ++next;
    const double score = best[begin].score;
    bool covered = false;  // by a piece of one code point
    const Trie::Node* node = trie_.First(word[begin]);
    for (int32_t end = begin + 1; node != nullptr; ++end) {
      if (node->id >= 0) {
        offer(begin, end, node->id, score + scores_[node->id]);
        covered = covered || end == next;
      }
      node = end < size ? trie_.Child(*node, word[end]) : nullptr;
    }
    if (!covered) offer(begin, next, unknown_, score + unknown_score_);
  }
  for (int32_t end = size, begin; end > 0; end = begin) {
    begin = best[end].begin;
    if (best[end].id != unknown_) {
      pieces->push_back({best[end].id, begin, end});
      continue;
    }
    while (begin > 0 && best[begin].id == unknown_) begin = best[begin].begin;
    AddUnknown(word, begin, end, pieces);
  }
  ClearScratch(&best);
  std::reverse(pieces->begin(), pieces->end());
}

}  // namespace

void UnigramScheme::SetStages(
    const TokenizerData& data, const TokenIds& ids, int32_t unknown, Pipeline* pipeline) const {
  SetMetaspaceText(metaspace, pipeline);
  pipeline->model = std::make_unique<Unigram>(*this, data, ids, unknown);
}

// The text stages are in data.rules, because the tokenizer.json is kept.
std::string UnigramScheme::Key(const TokenizerData& data) const {
  const absl::string_view bytes(
      reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(double));
  return absl::StrCat(data.rules, kMergesHead, byte_fallback, "1", bytes);
}

}  // namespace cloze
