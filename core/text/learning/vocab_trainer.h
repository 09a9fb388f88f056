// Learns a vocabulary from text like Hugging Face's trainers: byte-pair merges over word counts, or
// SentencePiece's Unigram.
#ifndef CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_
#define CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/text/tokenizer/schemes.h"

namespace cloze {

struct VocabOptions;
struct Recipe;

// A subword model whose vocabulary can be learned.
struct VocabKind {
  const char *name, *help;
  std::optional<bool> lowercase;  // the usual value; none: texts are not changed
  absl::StatusOr<Recipe> (*recipe)(const VocabOptions& options);
};
#define CLOZE_DECLARE_VOCAB(Name) extern const VocabKind k##Name##Vocab;
CLOZE_SUBWORD_SCHEMES(CLOZE_DECLARE_VOCAB)
#define CLOZE_VOCAB_ADDRESS(Name) &k##Name##Vocab,
inline constexpr const VocabKind* kVocabKinds[] = {CLOZE_SUBWORD_SCHEMES(CLOZE_VOCAB_ADDRESS)};

struct VocabOptions {
  const VocabKind* kind = &kWordPieceVocab;
  int32_t size = 8192;    // tokens, special ones included
  int64_t min_count = 2;  // rarer pairs are not merged, rarer pieces not tried
  // WordPiece: characters kept; rarer ones become <unk>. 0: the 1000 most frequent, and in large
  // vocabularies up to size / 2 that occur min_count times.
  int32_t max_alphabet = 0;
  int64_t memory_limit = int64_t{2} << 30;  // bytes for word counts; rare words are dropped to fit
  NormalizerOptions normalizer;             // WordPiece; Unigram: lowercase and strip_accents
};

struct VocabResult {
  // Tokens of a WordPiece vocabulary: <pad> <unk> <class> <sep> <mask>, characters by code point,
  // "##" characters by frequency, merges. Byte-level: <s> <pad> </s> <unk> <mask>, bytes by their
  // character, merges. Unigram: as NewUnigram, pieces by falling score.
  TokenizerData data;
  std::string not_utf8;        // about the first line that is not UTF-8; or empty
  int64_t bytes = 0;           // of the texts, with their ends
  int64_t words = 0;           // counted
  int64_t distinct_words = 0;  // of these, normalized
  // Left out: over 100 characters (always <unk>) or 4096 bytes, or rare beyond memory_limit.
  int64_t dropped_words = 0;
  // With strip_accents: the words that lose marks, and their letters with and without marks, by
  // falling count.
  int64_t stripped_words = 0;
  std::vector<std::pair<std::string, std::string>> stripped;
};

using VocabProgress = absl::FunctionRef<void(const char* stage, int64_t done, int64_t total)>;

// Reads the texts of `files`, as `open` opens them, in parallel, in bounded memory. The result
// depends only on the content, not on the number of threads. Calls `progress` now and then with
// "reading" and the bytes read so far and in all, or "learning" and steps. Returns fewer tokens
// than `size` if no pair is frequent enough, kSpec if `size` cannot hold the special tokens and
// bytes, kData if the files have no words. Errors of `open`.
absl::StatusOr<VocabResult> TrainVocab(const std::vector<std::string>& files,
    const VocabOptions& options, VocabProgress progress, const OpenTexts& open = OpenLines);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_VOCAB_TRAINER_H_
