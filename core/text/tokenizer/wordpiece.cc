// The trie is laid out level by level, so that a node's children are neighbours.
#include "core/text/tokenizer/wordpiece.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Returns all ids, sorted by the bytes of their tokens. Mostly compares the first eight bytes, as a
// number.
std::vector<int32_t> SortedIds(absl::Span<const std::string> tokens) {
  struct Entry {
    uint64_t begin;
    int32_t id;
  };
  std::vector<Entry> entries(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    entries[id].id = static_cast<int32_t>(id);
    for (size_t i = 0; i < 8; ++i)
      entries[id].begin =
          entries[id].begin << 8 | (i < tokens[id].size() ? uint8_t(tokens[id][i]) : 0);
  }
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return tokens[a.id] < tokens[b.id];
  });
  std::vector<int32_t> ids;
  ids.reserve(entries.size());
  for (const Entry& entry : entries) ids.push_back(entry.id);
  return ids;
}

bool Continues(absl::string_view token) {
  return token.size() > WordPiece::kPrefix.size() && absl::StartsWith(token, WordPiece::kPrefix);
}

}  // namespace

WordPiece::WordPiece(absl::Span<const std::string> tokens, int32_t unknown, int64_t max_chars)
    : unknown_(unknown), max_chars_(max_chars) {
  std::vector<Entry> whole, continuing;
  for (const int32_t id : SortedIds(tokens)) {
    const absl::string_view token = tokens[id];
    whole.push_back({token, id});
    if (Continues(token)) continuing.push_back({token.substr(kPrefix.size()), id});
  }
  whole_ = Build(std::move(whole));
  continuing_ = Build(std::move(continuing));
}

uint32_t WordPiece::Build(std::vector<Entry> entries) {
  struct Range {
    size_t begin, end, depth;
  };
  const uint32_t root = nodes_.size();
  nodes_.emplace_back();
  std::vector<Range> queue = {{0, entries.size(), 0}};  // queue[i] belongs to nodes_[root + i]
  for (size_t i = 0; i < queue.size(); ++i) {
    auto [begin, end, depth] = queue[i];
    const uint32_t node = root + i;
    nodes_[node].first_child = nodes_.size();
    if (begin < end && entries[begin].key.size() == depth) nodes_[node].id = entries[begin++].id;
    while (begin < end) {
      const uint8_t label = entries[begin].key[depth];
      size_t middle = begin + 1;
      while (middle < end && static_cast<uint8_t>(entries[middle].key[depth]) == label) ++middle;
      nodes_.emplace_back().label = label;
      ++nodes_[node].children;
      queue.push_back({begin, middle, depth + 1});
      begin = middle;
    }
  }
  return root;
}

const WordPiece::Node* WordPiece::Child(const Node& node, uint8_t label) const {
  const Node* begin = nodes_.data() + node.first_child;
  const Node* end = begin + node.children;
  if (node.children > 8)
    begin = std::lower_bound(
        begin, end, label, [](const Node& child, uint8_t x) { return child.label < x; });
  while (begin < end && begin->label < label) ++begin;
  return begin < end && begin->label == label ? begin : nullptr;
}

bool WordPiece::ContinuesWord(absl::string_view token) const {
  return absl::StartsWith(token, kPrefix);
}

void WordPiece::AppendDecoded(absl::string_view token, std::string* text) const {
  if (Continues(token)) {
    token.remove_prefix(kPrefix.size());
  } else if (!text->empty()) {
    *text += ' ';
  }
  absl::StrAppend(text, token);
}

void WordPiece::Split(absl::string_view word, std::vector<Piece>* pieces) const {
  pieces->clear();
  const auto unknown = [&] { pieces->assign(1, {unknown_, 0, static_cast<int32_t>(word.size())}); };
  if (word.size() > max_chars_ && CountCodePoints(word) > max_chars_) return unknown();
  for (size_t begin = 0; begin < word.size();) {
    Piece best{-1, static_cast<int32_t>(begin), static_cast<int32_t>(begin)};
    const Node* node = &nodes_[begin == 0 ? whole_ : continuing_];
    for (size_t at = begin; at < word.size() && (node = Child(*node, word[at])) != nullptr; ++at) {
      if (node->id >= 0) best.id = node->id, best.end = at + 1;
    }
    if (best.id < 0) return unknown();
    pieces->push_back(best);
    begin = best.end;
  }
}

}  // namespace cloze
