#include "core/text/tokenizer/trie.h"

#include <algorithm>

namespace cloze {

Trie::Trie(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    for (size_t i = 0; i < 8; ++i)
      entry.begin = entry.begin << 8 | (i < entry.key.size() ? uint8_t(entry.key[i]) : 0);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.key != b.key ? a.key < b.key : a.id < b.id;
  });
  struct Range {
    size_t begin, end, depth;
  };
  nodes_.emplace_back();
  std::vector<Range> queue = {{0, entries.size(), 0}};  // queue[i] belongs to nodes_[i]
  for (size_t i = 0; i < queue.size(); ++i) {
    auto [begin, end, depth] = queue[i];
    nodes_[i].first_child = nodes_.size();
    if (begin < end && entries[begin].key.size() == depth) nodes_[i].id = entries[begin].id;
    while (begin < end && entries[begin].key.size() == depth) ++begin;
    while (begin < end) {
      const uint8_t label = entries[begin].key[depth];
      size_t middle = begin + 1;
      while (middle < end && static_cast<uint8_t>(entries[middle].key[depth]) == label) ++middle;
      nodes_.emplace_back().label = label;
      ++nodes_[i].children;
      queue.push_back({begin, middle, depth + 1});
      begin = middle;
    }
  }
  first_.fill(0);
  for (uint32_t i = 1; i <= nodes_[0].children; ++i) first_[nodes_[i].label] = i;
}

const Trie::Node* Trie::Child(const Node& node, char byte) const {
  const auto label = static_cast<uint8_t>(byte);
  const Node* begin = nodes_.data() + node.first_child;
  const Node* end = begin + node.children;
  if (node.children > 8)
    begin = std::lower_bound(
        begin, end, label, [](const Node& child, uint8_t x) { return child.label < x; });
  while (begin < end && begin->label < label) ++begin;
  return begin < end && begin->label == label ? begin : nullptr;
}

}  // namespace cloze
