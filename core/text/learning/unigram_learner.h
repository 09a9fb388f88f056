// Learns SentencePiece's Unigram pieces and scores from word counts (Kudo 2018, arXiv:1804.10959).
#ifndef CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_

#include <string>
#include <utility>
#include <vector>

#include "core/text/learning/recipe.h"

namespace cloze {

using Pieces = std::vector<std::pair<std::string, double>>;  // with scores

// Cuts words into runs, whose ends no piece crosses: before U+2581; between numbers, punctuation,
// and letters of scripts with and without spaces; at the rarest characters, 0.05 % of the text.
// Returns the distinct runs by falling count, of at most `max_chars` characters in all.
CountedWords UnigramRuns(const CountedWords& words, int64_t max_chars);

// Returns the characters of `runs` with their counts, then the million substrings of 2 to 16
// characters with the greatest count times length. Leaves out those that are rarer than `min_count`
// or always followed by the same character. Does not depend on the number of threads.
Pieces UnigramSeeds(const CountedWords& runs, int64_t min_count);

// Returns at most `size` pieces with their log probabilities, by falling score; more if the text
// has more characters, fewer if it yields no more. As in sentencepiece's trainer, EM alternates
// with pruning the pieces whose removal lowers the likelihood least. `words` start with U+2581; if
// their runs exceed options.memory_limit, only the most frequent ones are used. The result does not
// depend on the number of threads. Calls progress("learning", rounds done, estimate of all rounds).
Pieces LearnUnigram(
    const CountedWords& words, int64_t size, const VocabOptions& options, VocabProgress progress);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_
