// Strings with ids as a trie over bytes.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TRIE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TRIE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

// Laid out level by level, so that a node's children are neighbours. Const methods are thread-safe.
class Trie {
 public:
  struct Entry {
    absl::string_view key;
    int32_t id;
    uint64_t begin = 0;  // set by Trie: the first eight bytes as a number, which sorts faster
  };
  // Children of a node are neighbours, sorted by label.
  struct Node {
    int32_t id = -1;  // of the key that ends here; -1 if none does
    uint32_t first_child = 0;
    uint16_t children = 0;
    uint8_t label = 0;
  };

  Trie() : Trie(std::vector<Entry>()) {}
  // Of entries with equal keys, the one with the lowest id counts. Does not keep the keys.
  explicit Trie(std::vector<Entry> entries);

  // Returns the node of a key of one byte, or null.
  const Node* First(char byte) const {
    const uint32_t node = first_[static_cast<uint8_t>(byte)];
    return node == 0 ? nullptr : &nodes_[node];
  }
  // Returns the child of `node` for the next byte of a key, or null.
  const Node* Child(const Node& node, char byte) const;

 private:
  std::vector<Node> nodes_;          // the first is the root
  std::array<uint32_t, 256> first_;  // children of the root; 0: none
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TRIE_H_
