// Sequences of a classifier for texts, also long ones.
#ifndef CLOZE_TASKS_LONG_TEXT_H_
#define CLOZE_TASKS_LONG_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"

namespace cloze {

// <class> text <sep> [pair <sep>]; `second` is the index of the first token of type 1, ids.size()
// when there is none.
struct TextSequence {
  std::vector<int32_t> ids;
  int64_t second = 0;
};

// Returns the sequences of a text, or of a pair if `pair` is not null, with at most max_tokens
// (at least 3; 4 for a pair) each: one, or with WINDOWS and a single text as many full ones as
// cover it, overlapping evenly. *cut receives the number of tokens in none of them.
std::vector<TextSequence> SequencesOfText(const Tokenizer& tokenizer, absl::string_view text,
    const std::string* pair, int64_t max_tokens, SequenceClassificationSpec::LongTexts long_texts,
    int64_t* cut);

}  // namespace cloze

#endif  // CLOZE_TASKS_LONG_TEXT_H_
