#include <algorithm>
#include <cstring>

#include "core/base/text.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Returns the start of the white space that ends at `end`; at least `from`.
int64_t SpacesBefore(absl::string_view text, int64_t from, int64_t end) {
  int64_t begin = end;
  for (int64_t at = from; at < end;) {
    const CodePoint c = CodePointAt(text.substr(0, end), at);
    at += c.size;
    if (!IsSpace(c.value)) {
      begin = end;
    } else if (begin == end) {
      begin = at - c.size;
    }
  }
  return begin;
}

int64_t SpacesAfter(absl::string_view text, int64_t at) {
  while (at < text.size()) {
    const CodePoint c = CodePointAt(text, at);
    if (!IsSpace(c.value)) break;
    at += c.size;
  }
  return at;
}

// True if there is a character of a word before or at text[at].
bool WordBefore(absl::string_view text, size_t at) {
  if (at == 0) return false;
  return IsWord(CodePointAt(text.substr(0, at), Utf8Floor(text, at - 1)).value);
}
bool WordAt(absl::string_view text, size_t at) {
  return at < text.size() && IsWord(CodePointAt(text, at).value);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  std::vector<Trie::Entry> entries;
  for (const Token& token : tokens_) {
    entries.push_back({token.text, static_cast<int32_t>(entries.size())});
    bool& starts = starts_[static_cast<unsigned char>(token.text[0])];
    if (!starts) first_bytes_.push_back(token.text[0]);
    starts = true;
  }
  trie_ = Trie(std::move(entries));
}

AddedTokens::Match AddedTokens::Find(absl::string_view text, size_t from, size_t done) const {
  for (; from < text.size(); ++from) {
    if (first_bytes_.size() == 1) {
      const void* at = std::memchr(text.data() + from, first_bytes_[0], text.size() - from);
      from = at == nullptr ? text.size() : static_cast<const char*>(at) - text.data();
    } else {
      while (from < text.size() && !starts_[static_cast<unsigned char>(text[from])]) ++from;
    }
    if (from == text.size()) break;
    int32_t found = -1;
    size_t size = 0;
    const Trie::Node* node = trie_.First(text[from]);
    for (size_t end = from + 1; node != nullptr; ++end) {
      if (node->id >= 0) found = node->id, size = end - from;
      node = end < text.size() ? trie_.Child(*node, text[end]) : nullptr;
    }
    if (found < 0) continue;
    const Token& token = tokens_[found];
    const auto at = static_cast<int64_t>(from), end = static_cast<int64_t>(from + size),
               start = static_cast<int64_t>(done);
    if (token.single_word && (WordBefore(text, from) || WordAt(text, from + size))) {
      from += size - 1;
      continue;
    }
    return {{token.lstrip ? std::max(SpacesBefore(text, start, at), start) : at,
                token.rstrip ? SpacesAfter(text, end) : end},
        token.id, {at, end}};
  }
  const auto size = static_cast<int64_t>(text.size());
  return {{size, size}, -1, {size, size}};
}

}  // namespace cloze
