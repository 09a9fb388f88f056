// Byte-pair merges over word counts: the most frequent pair of neighbouring pieces becomes a piece,
// again and again.
#ifndef CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

struct MergeOptions {
  int32_t size = 0;                     // tokens at most, those given included
  int64_t min_count = 0;                // of a pair
  int32_t max_alphabet = 0;             // characters
  std::string prefix = "##";            // of what continues a word
  std::vector<char32_t> alphabet = {};  // characters that are tokens in any case
};

// Appends to *tokens (special ones, at first) the characters of `words` by code point; with the
// prefix, those that continue a word, the most common one first (Hugging Face takes them as it
// meets them in a random order, so mostly alike); and the merges in the order they are found.
// `words` are distinct and in a fixed order, with counts above 0. Of pairs with equal counts the
// one whose pieces are the older tokens comes first. `merges` (may be null) gets the ids of the two
// pieces of each merge.
void LearnMerges(const std::vector<std::pair<std::string, int64_t>>& words,
    const MergeOptions& options, std::vector<std::string>* tokens,
    std::vector<std::pair<int32_t, int32_t>>* merges = nullptr);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
