// Byte-level BPE: the bytes of a word are merged pair by pair, in the order of a list of merges.
#include <algorithm>
#include <array>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/text/tokenizer/schemes.h"

namespace cloze {
namespace {

class ByteBpe final : public SubwordModel {
 public:
  // `unknown`: the id of bytes that are not tokens; -1 drops them, as Hugging Face does.
  ByteBpe(
      const ByteBpeScheme& scheme, const TokenizerData& data, const TokenIds& ids, int32_t unknown)
      : fuses_(scheme.fuse_unknown) {
    // Our own files list all tokens as the model's.
    const size_t model_tokens = data.json.empty() ? data.tokens.size() : ModelTokens(data).size();
    for (int b = 0; b < 256; ++b) {
      std::string spelling;
      AppendUtf8(ByteCharacter(static_cast<uint8_t>(b)), &spelling);
      int32_t id = ids.Find(spelling);
      if (id >= static_cast<int64_t>(model_tokens)) id = -1;
      bytes_[b] = id < 0 ? unknown : id;
      unknown_[b] = id < 0;
      drops_ = drops_ || bytes_[b] < 0;
    }
    merges_.reserve(scheme.merges.size());
    merged_.reserve(scheme.merges.size());
    for (size_t rank = 0; rank < scheme.merges.size(); ++rank) {
      const auto [left, right] = scheme.merges[rank];
      const int32_t merged = ids.Find(data.tokens[left] + data.tokens[right]);
      CLOZE_CHECK(merged >= 0);
      merges_[{left, right}] = {static_cast<int32_t>(rank), merged};
      merged_.push_back(merged);
    }
  }

  void Split(absl::string_view word, std::vector<Subword>* pieces) const override;

  // True unless the token begins with white space or ASCII punctuation, as new words do.
  bool ContinuesWord(absl::string_view token) const override {
    const auto first = static_cast<unsigned char>(BytesOfToken(token)[0]);
    return first >= 0x80 || absl::ascii_isalnum(first);
  }
  void AppendDecoded(absl::string_view token, bool, std::string* text) const override {
    *text += BytesOfToken(token);
  }
  std::string Show(absl::string_view token) const override { return BytesOfToken(token); }

 private:
  struct Merge {
    int32_t rank, id;
  };
  // Part of a word; its index is its first byte. It ends where the next one begins.
  struct Symbol {
    int32_t id = -1;  // -1: none
    int32_t previous = -1, next = -1;
  };
  // A symbol and its right neighbour, which may be merged: rank << 32 | index of the symbol.
  using Candidate = uint64_t;

  // Returns the merge of two adjacent symbols, or null.
  const Merge* FindMerge(const Symbol& left, const Symbol& right) const {
    const auto found = merges_.find({left.id, right.id});
    return found == merges_.end() ? nullptr : &found->second;
  }

  // Sets the symbols of single bytes, fused if unknown. Returns the index of the first, or -1.
  int32_t SetSymbols(absl::string_view word, std::vector<Symbol>* symbols) const;
  // Places pieces as Hugging Face does, which adds up the sizes of the spellings of tokens: dropped
  // bytes have none.
  void PlacePieces(absl::string_view word, std::vector<Subword>* pieces) const;

  bool drops_ = false;  // some bytes are dropped
  const bool fuses_;    // adjacent unknown bytes are one symbol
  std::array<int32_t, 256> bytes_;
  std::array<bool, 256> unknown_;
  HashMap<std::pair<int32_t, int32_t>, Merge> merges_;  // by left and right token
  std::vector<int32_t> merged_;                         // by rank: the new token
};

void ByteBpe::Split(absl::string_view word, std::vector<Subword>* pieces) const {
  thread_local std::vector<Symbol> symbols;
  thread_local std::vector<Candidate> heap;
  heap.clear(), pieces->clear();
  const int32_t first = SetSymbols(word, &symbols);
  if (first < 0) return;
  const auto add = [&](int32_t at) {
    if (at < 0 || symbols[at].next < 0) return false;
    const Merge* merge = FindMerge(symbols[at], symbols[symbols[at].next]);
    if (merge != nullptr) heap.push_back(Candidate(merge->rank) << 32 | at);
    return merge != nullptr;
  };
  const auto consider = [&](int32_t at) {
    if (add(at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (int32_t at = first; at >= 0; at = symbols[at].next) add(at);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const int32_t id = merged_[heap.back() >> 32], at = static_cast<int32_t>(heap.back());
    heap.pop_back();
    Symbol& left = symbols[at];
    if (left.id < 0 || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    const Merge* merge = FindMerge(left, right);
    // Skip a candidate if one of its symbols has been merged meanwhile.
    if (merge == nullptr || merge->id != id) continue;
    left.id = id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].previous = at;
    consider(left.previous);
    consider(at);
  }
  ClearScratch(&heap);
  for (int32_t at = first, next; at >= 0; at = next) {
    next = symbols[at].next;
    pieces->push_back({symbols[at].id, at, next < 0 ? static_cast<int32_t>(word.size()) : next});
  }
  ClearScratch(&symbols);
  if (drops_) PlacePieces(word, pieces);
}

int32_t ByteBpe::SetSymbols(absl::string_view word, std::vector<Symbol>* symbols) const {
  symbols->assign(word.size(), {});
  int32_t first = -1, last = -1;
  bool after_unknown = false;
  for (int32_t i = 0; i < static_cast<int32_t>(word.size()); ++i) {
    const auto value = static_cast<uint8_t>(word[i]);
    const int32_t id = bytes_[value];
    const bool fused = fuses_ && after_unknown && unknown_[value];
    after_unknown = unknown_[value];
    if (fused || id < 0) continue;
    (*symbols)[i] = {.id = id, .previous = last};
    (last < 0 ? first : (*symbols)[last].next) = i;
    last = i;
  }
  return first;
}

void ByteBpe::PlacePieces(absl::string_view word, std::vector<Subword>* pieces) const {
  std::vector<int32_t> places;  // the byte of `word` of each byte of its spelling
  const auto spelled = [&](int32_t i) {
    return ByteCharacter(static_cast<uint8_t>(word[i])) < 0x80 ? 1 : 2;
  };
  for (size_t i = 0; i < word.size(); ++i) places.insert(places.end(), spelled(i), i);
  size_t end = 0;
  for (Subword& piece : *pieces) {
    const size_t begin = end;
    for (int32_t i = piece.begin; i < piece.end; ++i) {
      if (bytes_[static_cast<uint8_t>(word[i])] >= 0) end += spelled(i);
    }
    piece.begin = places[begin], piece.end = places[end - 1] + 1;
  }
}

}  // namespace

void ByteBpeScheme::SetStages(
    const TokenizerData& data, const TokenIds& ids, int32_t unknown, Pipeline* pipeline) const {
  SetByteLevelText(add_prefix_space, pipeline);
  pipeline->model = std::make_unique<ByteBpe>(*this, data, ids, drops_unknown ? -1 : unknown);
}

std::string MergesText(const TokenizerData& data) {
  std::string text = kMergesHead;
  for (const auto& [left, right] : SchemeOf<ByteBpeScheme>(data).merges)
    absl::StrAppend(&text, data.tokens[left], " ", data.tokens[right], "\n");
  return text;
}

std::string ByteBpeScheme::Key(const TokenizerData& data) const {
  if (!data.rules.empty())
    return absl::StrCat(
        data.rules, fuse_unknown ? "fuse\n" : "", MergesText(data), "0", drops_unknown);
  std::string key = absl::StrCat(MergesText(data), add_prefix_space, drops_unknown,
      absl::StrJoin(data.lstrip, " "), " | ", absl::StrJoin(data.rstrip, " "));
  if (data.model_tokens > 0) absl::StrAppend(&key, " | model ", data.model_tokens);
  if (!data.trim_offsets || data.trim_keeps_first)
    absl::StrAppend(&key, " | trim ", data.trim_offsets, data.trim_keeps_first);
  if (fuse_unknown) key += " | fuse";
  return key;
}

// Checks that no merge is missing. A token that no merge produces is accepted if no two tokens join
// to it: RoBERTa has such tokens ("madeupword0000", "<|endoftext|>").
absl::Status ByteBpeScheme::Check(
    const TokenOrigin& origin, const TokenIds& ids, const TokenizerData& data) const {
  std::vector<bool> made(data.tokens.size());
  for (const auto& [left, right] : merges) {
    const int32_t merged = ids.Find(data.tokens[left] + data.tokens[right]);
    if (merged >= 0) made[merged] = true;
  }
  const SpecialNames& names = data.names;
  for (const std::string* name : {&names.pad, &names.unk, &names.cls, &names.sep, &names.mask}) {
    if (!name->empty()) made[ids.Find(*name)] = true;
  }
  for (const int32_t id : data.added) made[id] = true;
  for (size_t id = 0; id < made.size(); ++id) {
    const absl::string_view token = data.tokens[id];
    for (size_t cut = 1; !made[id] && cut < token.size(); ++cut) {
      if (ids.Find(token.substr(0, cut)) < 0 || ids.Find(token.substr(cut)) < 0) continue;
      return Error(Exit::kData, QuotePath(origin.merges.empty() ? origin.file : origin.merges),
          ": no merge produces token ", id, ", ", Quote(token),
          ": expected a merge for each token (is the list cut off?)");
    }
  }
  return absl::OkStatus();
}

}  // namespace cloze
