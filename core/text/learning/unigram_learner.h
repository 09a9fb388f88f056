// Learns SentencePiece's Unigram pieces and scores from word counts (Kudo 2018, arXiv:1804.10959).
#ifndef CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_

#include "absl/functional/function_ref.h"
#include "core/text/learning/unigram_seeds.h"

namespace cloze {

// Returns at most `size` pieces with their log probabilities, by falling score; more if the text
// has more characters, fewer if it yields no more. As in sentencepiece's trainer, EM alternates
// with pruning the pieces whose removal lowers the likelihood least. `words` start with U+2581; if
// their runs exceed options.memory_limit, only the most frequent ones are used. The result does not
// depend on the number of threads. Calls progress(rounds done, estimate of all rounds).
Pieces LearnUnigram(const CountedWords& words, int64_t size, const VocabOptions& options,
    absl::FunctionRef<void(int64_t done, int64_t total)> progress);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_UNIGRAM_LEARNER_H_
