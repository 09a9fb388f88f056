// Finds tokens that are recognised in raw text, before it is normalised: "[MASK]", "<mask>".
#ifndef CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_
#define CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

class AddedTokens {
 public:
  // Byte offsets of a token in the text. If none is found, id is -1 and all offsets are
  // text.size().
  struct Match {
    size_t begin = 0, end = 0;  // with the white space of lstrip and rstrip
    int32_t id = -1;
    size_t token_begin = 0, token_end = 0;  // the token alone
  };

  // `lstrip`, `rstrip`: a match includes the white space to the left or right of the token.
  void Add(const std::string& token, int32_t id, bool lstrip = false, bool rstrip = false);

  // Returns the leftmost token at or after `from`; of several that start there, the longest.
  Match Find(absl::string_view text, size_t from) const;

 private:
  struct Token {
    int32_t id;
    bool lstrip, rstrip;
  };
  std::unordered_map<std::string, Token> tokens_;
  // Lengths of the tokens by their first byte, longest first.
  std::array<std::vector<size_t>, 256> lengths_;
  std::vector<char> first_bytes_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_ADDED_TOKENS_H_
