// The trie is laid out level by level, so that a node's children are neighbours.
#include "core/text/tokenizer/wordpiece.h"

#include <algorithm>

#include "core/text/tokenizer/token_order.h"

namespace cloze {

WordPiece::WordPiece(absl::Span<const std::string> tokens, int32_t unknown) : unknown_(unknown) {
  std::vector<Entry> whole, continuing;
  for (const int32_t id : SortedIds(tokens)) {
    const absl::string_view token = tokens[id];
    whole.push_back({token, id});
    if (token.size() > kPrefix.size() && token.substr(0, kPrefix.size()) == kPrefix)
      continuing.push_back({token.substr(kPrefix.size()), id});
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

int32_t WordPiece::Find(absl::string_view token) const {
  const Node* node = &nodes_[whole_];
  for (size_t at = 0; node != nullptr && at < token.size(); ++at) node = Child(*node, token[at]);
  return node == nullptr ? -1 : node->id;
}

void WordPiece::Split(absl::string_view word, std::vector<Piece>* pieces) const {
  pieces->clear();
  for (size_t begin = 0; begin < word.size();) {
    Piece best{-1, static_cast<int32_t>(begin), static_cast<int32_t>(begin)};
    const Node* node = &nodes_[begin == 0 ? whole_ : continuing_];
    for (size_t at = begin; at < word.size() && (node = Child(*node, word[at])) != nullptr; ++at) {
      if (node->id >= 0) best.id = node->id, best.end = at + 1;
    }
    if (best.id < 0) {
      pieces->assign(1, {unknown_, 0, static_cast<int32_t>(word.size())});
      return;
    }
    pieces->push_back(best);
    begin = best.end;
  }
}

}  // namespace cloze
