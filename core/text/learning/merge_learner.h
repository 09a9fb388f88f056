// Learns byte-pair merges from word counts: repeatedly joins the most frequent pair of neighbouring
// pieces to a new piece.
#ifndef CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/text/learning/vocab_trainer.h"

namespace cloze {

// Distinct words with their counts, all above 0.
using CountedWords = std::vector<std::pair<std::string, int64_t>>;

// Appends to data->tokens, which holds the special tokens: the characters of `words` (byte-level:
// those that spell bytes) by code point; the characters inside words, with "##" (WordPiece), by
// falling frequency (Hugging Face's order is random, but similar); the merged pieces in the order
// of their merges. Appends to data->merges. Of pairs with equal counts, merges the one with the
// lower ids first.
void LearnMerges(const CountedWords& words, const VocabOptions& options, TokenizerData* data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
