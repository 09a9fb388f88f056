// Byte-level BPE: the bytes of a word are merged pair by pair, in the order of a list of merges.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

class ByteBpe final : public SubwordModel {
 public:
  // Requires `data` that CheckTokens accepted, and the `ids` of its tokens. `unknown` is the id of
  // bytes that are not tokens; -1 drops them, as Hugging Face does.
  ByteBpe(const TokenizerData& data, const TokenIds& ids, int32_t unknown);

  // Repeatedly applies the first merge of the list that fits, at its leftmost place. O(n log n).
  void Split(absl::string_view word, std::vector<Piece>* pieces) const override;
  // True unless the token begins with white space or ASCII punctuation, as new words do.
  bool ContinuesWord(absl::string_view token) const override;
  void AppendDecoded(absl::string_view token, std::string* text) const override;
  std::string Show(absl::string_view token) const override;

 private:
  struct Merge {
    int32_t left = -1, right = -1, rank, id;
  };
  struct Candidate;
  // Returns the index in merges_ of the merge of two tokens, or of the unused place for it.
  size_t Place(int32_t left, int32_t right) const;

  std::array<int32_t, 256> bytes_;
  std::vector<Merge> merges_;  // a hash table, at most half full; unused places have left < 0
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
