// WordPiece: the longest token that matches, again and again, over a trie.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {

class WordPiece final : public SubwordModel {
 public:
  static constexpr absl::string_view kPrefix = "##";  // of tokens that continue a word

  // Requires distinct `tokens`, by id. Words with a part that matches no token, or with more than
  // `max_chars` code points, become one token `unknown`.
  WordPiece(absl::Span<const std::string> tokens, int32_t unknown, int64_t max_chars);

  // Time is linear in the length of the word times that of the longest token.
  void Split(absl::string_view word, std::vector<Piece>* pieces) const override;
  size_t max_word_bytes() const override { return 4 * max_chars_; }
  bool ContinuesWord(absl::string_view token) const override;
  // Puts a blank between words and removes "##".
  void AppendDecoded(absl::string_view token, std::string* text) const override;

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

  // Adds a trie of `entries`, which are sorted by key; returns its root.
  uint32_t Build(std::vector<Entry> entries);
  const Node* Child(const Node& node, uint8_t label) const;

  std::vector<Node> nodes_;
  uint32_t whole_ = 0, continuing_ = 0;  // roots: all tokens; those with the prefix, without it
  const int32_t unknown_;
  const int64_t max_chars_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_WORDPIECE_H_
