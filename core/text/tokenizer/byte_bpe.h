// Byte-level BPE: the bytes of a word are merged pair by pair, in the order of a list of merges.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/tokenizer/tokenizer_data.h"

namespace cloze {

class ByteBpe final : public SubwordModel {
 public:
  // Requires checked `data`, whose merges join to tokens; `ids` maps its tokens. `unknown` is the
  // id of bytes that are no token; with -1 they are dropped, as Hugging Face does.
  ByteBpe(const TokenizerData& data, const TokenIds& ids, int32_t unknown);

  // Merges the pair that comes first in the list, the leftmost of several, until none is left.
  // O(n log n).
  void Split(absl::string_view word, std::vector<Piece>* pieces) const override;
  // True unless the token begins with white space or ASCII punctuation, as new words do.
  bool ContinuesWord(absl::string_view token) const override;
  void AppendDecoded(absl::string_view token, std::string* text) const override;
  std::string Show(absl::string_view token) const override;

 private:
  struct Target {
    int32_t rank, id;
  };
  struct Candidate;
  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::array<int32_t, 256> bytes_;
  absl::flat_hash_map<uint64_t, Target> merges_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_BYTE_BPE_H_
