// WordPiece: the greedy longest match of a word's pieces, over a trie.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cloze {

// A token and the bytes of the normalised word that it covers.
struct Piece {
  int32_t id = 0;
  int32_t begin = 0, end = 0;
};

class WordPiece {
 public:
  static constexpr absl::string_view kPrefix = "##";  // of a piece that continues a word

  // `tokens` in the order of their ids, without duplicates; `unknown` is an id.
  WordPiece(absl::Span<const std::string> tokens, int32_t unknown);

  // Sets *pieces to the pieces of a normalised word; one piece `unknown` over all of it when a part
  // of it has no match. Time is linear in the word's length times that of the longest token.
  void Split(absl::string_view word, std::vector<Piece>* pieces) const;

  // Id of a token by its full spelling; -1 when there is none.
  int32_t Find(absl::string_view token) const;

  int32_t unknown() const { return unknown_; }

 private:
  // Children of a node are neighbours, sorted by label.
  struct Node {
    int32_t id = -1;
    uint32_t first_child = 0;
    uint16_t children = 0;
    uint8_t label = 0;
  };
  struct Entry {
    absl::string_view key;
    int32_t id;
  };

  // Entries in the order of their keys; the root of their trie.
  uint32_t Build(std::vector<Entry> entries);
  const Node* Child(const Node& node, uint8_t label) const;

  std::vector<Node> nodes_;
  uint32_t whole_ = 0,
           continuing_ = 0;  // roots: tokens as they are, and those with the prefix, without it
  int32_t unknown_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_
