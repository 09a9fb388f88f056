// Finds tokens that are recognised in raw text, before it is normalised: "[MASK]", "<mask>".
#ifndef CLOZE_CORE_TEXT_ADDED_TOKENS_H_
#define CLOZE_CORE_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

class AddedTokens {
 public:
  struct Match {
    size_t begin = 0, end = 0;  // bytes; both text.size() when there is none
    int32_t id = -1;
  };

  void Add(const std::string& token, int32_t id);

  // The leftmost token at or after `from`, the longest of those that start there.
  Match Find(absl::string_view text, size_t from) const;

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::array<std::vector<size_t>, 256> lengths_;  // of the tokens with that first byte, longest first
  std::vector<char> first_bytes_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_ADDED_TOKENS_H_
