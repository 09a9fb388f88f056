// Learns a vocabulary from text, WordPiece or byte-level BPE: byte-pair merges over word counts, as
// Hugging Face's trainer does.
#ifndef CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_
#define CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

struct VocabOptions {
  int32_t size = 8192;          // tokens, special ones included
  int64_t min_count = 2;        // pairs rarer than this are not merged
  int32_t max_alphabet = 1000;  // characters kept; rarer ones become <unk>
  int64_t memory_limit =
      int64_t{2} << 30;  // bytes of word counts; the rarest are dropped (and counted) beyond it
  NormalizerOptions normalizer;  // WordPiece only
  bool byte_level = false;  // byte-level BPE; max_alphabet has no meaning, all 256 bytes are tokens
};

struct VocabResult {
  // <pad> <unk> <class> <sep> <mask>, then characters by code point, "##" characters by how common
  // they are, merges; byte-level: <s> <pad>
  // </s> <unk> <mask>, then bytes by their character's code point, merges.
  std::vector<std::string> tokens;
  std::vector<std::pair<int32_t, int32_t>>
      merges;                  // byte-level only: ids of both tokens, in the order of learning
  int64_t bytes = 0;           // read
  int64_t words = 0;           // counted
  int64_t distinct_words = 0;  // of these, normalised
  int64_t dropped_words = 0;   // not counted: longer than 100 characters (always <unk>), or rare
                               // ones beyond memory_limit
};

// Reads `files` ("-" is standard input) line by line, in parallel, in bounded memory. The result
// depends only on the content, not on the threads. `progress` is called now and then with the bytes
// read so far and all bytes. Fewer tokens than `size` result when no pair is left that is frequent
// enough. kSpec when `size` cannot hold the special tokens and bytes; kData when the files hold no
// word.
absl::StatusOr<VocabResult> TrainVocab(const std::vector<std::string>& files,
    const VocabOptions& options, absl::FunctionRef<void(int64_t done, int64_t total)> progress);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_
