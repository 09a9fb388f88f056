// Byte-pair merges over word counts: again and again, the most frequent pair of neighbouring pieces
// becomes a piece.
#ifndef CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

struct MergeOptions {
  int32_t size = 0;                // tokens at most, those given included
  int64_t min_count = 0;           // of a pair
  int32_t max_alphabet = 0;        // characters taken from words
  std::string prefix = "##";       // of pieces that continue a word
  std::vector<char32_t> alphabet;  // characters that are tokens in any case
};

// Appends to *tokens (the special ones, at first) the characters of `words` by code point; with the
// prefix, the characters that continue a word, the most frequent first (Hugging Face's order is
// random, and mostly like this); then the merged pieces in the order they are found. Appends the
// ids of the two pieces of each merge to *merges. Of pairs with equal counts, the one with the
// older tokens comes first. Requires distinct `words` with counts above 0.
void LearnMerges(const std::vector<std::pair<std::string, int64_t>>& words,
    const MergeOptions& options, std::vector<std::string>* tokens,
    std::vector<std::pair<int32_t, int32_t>>* merges);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
