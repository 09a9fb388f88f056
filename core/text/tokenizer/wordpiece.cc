// WordPiece over a trie that is laid out level by level, so that a node's children are neighbours.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr absl::string_view kPrefix = "##";  // of tokens that continue a word

bool Continues(absl::string_view token) {
  return token.size() > kPrefix.size() && absl::StartsWith(token, kPrefix);
}

class WordPiece final : public SubwordModel {
 public:
  WordPiece(const std::vector<std::string>& tokens, int32_t unknown, int64_t max_chars)
      : unknown_(unknown), max_chars_(max_chars) {
    std::vector<Entry> whole, continuing;
    for (const std::string& token : tokens) {
      whole.push_back({token, static_cast<int32_t>(whole.size())});
      for (size_t i = 0; i < 8; ++i)
        whole.back().begin = whole.back().begin << 8 | (i < token.size() ? uint8_t(token[i]) : 0);
    }
    std::sort(whole.begin(), whole.end(), [](const Entry& a, const Entry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.key < b.key;
    });
    for (const Entry& entry : whole) {
      if (Continues(entry.key)) continuing.push_back({entry.key.substr(kPrefix.size()), entry.id});
    }
    whole_ = Build(whole);
    continuing_ = Build(continuing);
  }

  void Split(absl::string_view word, std::vector<Piece>* pieces) const override {
    pieces->clear();
    const auto unknown = [&] {
      pieces->assign(1, {unknown_, 0, static_cast<int32_t>(word.size())});
    };
    if (word.size() > max_chars_ && CountCodePoints(word) > max_chars_) return unknown();
    for (size_t begin = 0; begin < word.size();) {
      Piece best{-1, static_cast<int32_t>(begin), static_cast<int32_t>(begin)};
      const Node* node = &nodes_[begin == 0 ? whole_ : continuing_];
      for (size_t at = begin; at < word.size() && (node = Child(*node, word[at])) != nullptr;
           ++at) {
        if (node->id >= 0) best.id = node->id, best.end = at + 1;
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

  // Puts a blank between words and removes "##".
  void AppendDecoded(absl::string_view token, std::string* text) const override {
    if (Continues(token)) {
      token.remove_prefix(kPrefix.size());
    } else if (!text->empty()) {
      *text += ' ';
    }
    absl::StrAppend(text, token);
  }

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
    uint64_t begin = 0;  // the first eight bytes as a number, which sorts faster
  };

  // Adds a trie of `entries`, which are sorted by key; returns its root.
  uint32_t Build(const std::vector<Entry>& entries);

  const Node* Child(const Node& node, uint8_t label) const {
    const Node* begin = nodes_.data() + node.first_child;
    const Node* end = begin + node.children;
    if (node.children > 8)
      begin = std::lower_bound(
          begin, end, label, [](const Node& child, uint8_t x) { return child.label < x; });
    while (begin < end && begin->label < label) ++begin;
    return begin < end && begin->label == label ? begin : nullptr;
  }

  std::vector<Node> nodes_;
  uint32_t whole_ = 0, continuing_ = 0;  // roots: all tokens; those with the prefix, without it
  const int32_t unknown_;
  const int64_t max_chars_;
};

uint32_t WordPiece::Build(const std::vector<Entry>& entries) {
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

}  // namespace

std::unique_ptr<const SubwordModel> MakeWordPiece(
    const std::vector<std::string>& tokens, int32_t unknown, int64_t max_chars) {
  return std::make_unique<WordPiece>(tokens, unknown, max_chars);
}

}  // namespace cloze
