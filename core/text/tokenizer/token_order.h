// Tokens in the order of their bytes. Private to core/text.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TOKEN_ORDER_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TOKEN_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// The ids of all tokens, sorted by their bytes; equal ones by id. Mostly compares the first eight
// bytes, which it has at hand as a number.
inline std::vector<int32_t> SortedIds(absl::Span<const std::string> tokens) {
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
    const int order = tokens[a.id].compare(tokens[b.id]);
    return order != 0 ? order < 0 : a.id < b.id;
  });
  std::vector<int32_t> ids;
  ids.reserve(entries.size());
  for (const Entry& entry : entries) ids.push_back(entry.id);
  return ids;
}

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TOKEN_ORDER_H_
