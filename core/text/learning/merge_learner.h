// Learns byte-pair merges from word counts: repeatedly joins the most frequent pair of neighbouring
// pieces to a new piece.
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

// Appends to *tokens, which holds the special tokens: the characters of `words` by code point; the
// characters inside words, with the prefix, by falling frequency (Hugging Face's order is random,
// but similar); the merged pieces in the order of their merges. Appends the ids of the two pieces
// of each merge to *merges. Of pairs with equal counts, merges the one with the lower ids first.
// Requires distinct `words` with counts above 0.
void LearnMerges(const std::vector<std::pair<std::string, int64_t>>& words,
    const MergeOptions& options, std::vector<std::string>* tokens,
    std::vector<std::pair<int32_t, int32_t>>* merges);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
