#include <algorithm>
#include <cstring>
#include <functional>

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

}  // namespace

void AddedTokens::Add(const std::string& token, int32_t id, bool lstrip, bool rstrip) {
  tokens_[token] = {id, lstrip, rstrip};
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(token[0])];
  if (lengths.empty()) first_bytes_.push_back(token[0]);
  if (std::find(lengths.begin(), lengths.end(), token.size()) == lengths.end())
    lengths.push_back(token.size());
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
}

AddedTokens::Match AddedTokens::Find(absl::string_view text, size_t from) const {
  const size_t start = from;
  while (from < text.size()) {
    if (first_bytes_.size() == 1) {
      const void* at = std::memchr(text.data() + from, first_bytes_[0], text.size() - from);
      from = at == nullptr ? text.size() : static_cast<const char*>(at) - text.data();
    } else {
      while (from < text.size() && lengths_[static_cast<unsigned char>(text[from])].empty()) ++from;
    }
    if (from == text.size()) break;
    for (const size_t length : lengths_[static_cast<unsigned char>(text[from])]) {
      if (length > text.size() - from) continue;
      const auto found = tokens_.find(std::string(text.substr(from, length)));
      if (found == tokens_.end()) continue;
      const Token& token = found->second;
      const auto at = static_cast<int64_t>(from), end = static_cast<int64_t>(from + length);
      return {{token.lstrip ? SpacesBefore(text, start, at) : at,
                  token.rstrip ? SpacesAfter(text, end) : end},
          token.id, {at, end}};
    }
    ++from;
  }
  const auto size = static_cast<int64_t>(text.size());
  return {{size, size}, -1, {size, size}};
}

}  // namespace cloze
