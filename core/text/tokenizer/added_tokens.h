// Finds tokens that are recognised in raw text, before it is normalised: "[MASK]", "<mask>".
#ifndef CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_
#define CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_

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
    size_t begin = 0,
           end =
               0;  // bytes, the blanks that it takes included; both text.size() when there is none
    int32_t id = -1;
    size_t token_begin = 0, token_end = 0;  // without those blanks
  };

  // lstrip, rstrip: takes the white space to its left or right.
  void Add(const std::string& token, int32_t id, bool lstrip = false, bool rstrip = false);

  // The leftmost token at or after `from`, the longest of those that start there.
  Match Find(absl::string_view text, size_t from) const;

 private:
  struct Token {
    int32_t id;
    bool lstrip, rstrip;
  };
  std::unordered_map<std::string, Token> tokens_;
  std::array<std::vector<size_t>, 256>
      lengths_;  // of the tokens with that first byte, longest first
  std::vector<char> first_bytes_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_
