// Jumps from one possible first byte to the next.
#include "core/text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace cloze {

void AddedTokens::Add(const std::string& token, int32_t id) {
  ids_[token] = id;
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(token[0])];
  if (lengths.empty()) first_bytes_.push_back(token[0]);
  if (std::find(lengths.begin(), lengths.end(), token.size()) == lengths.end()) lengths.push_back(token.size());
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
}

AddedTokens::Match AddedTokens::Find(absl::string_view text, size_t from) const {
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
      const auto found = ids_.find(std::string(text.substr(from, length)));
      if (found != ids_.end()) return {from, from + length, found->second};
    }
    ++from;
  }
  return {text.size(), text.size(), -1};
}

}  // namespace cloze
