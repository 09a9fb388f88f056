// One label for every word of a sentence, however long it is.
#ifndef CLOZE_TASKS_TAGGER_H_
#define CLOZE_TASKS_TAGGER_H_

#include <string>
#include <vector>

#include "tasks/session.h"

namespace cloze {

struct WordTag {
  int label = 0;    // index into config().labels
  float score = 0;  // its probability
};

// Tags sentences of words that are split already: result[s][w] belongs to sentences[s][w]; no word is ever left out. A word is read off its
// first piece, a word without pieces off <unk>. A sentence longer than the model is cut at word borders into windows that overlap by half;
// each word takes the window in which it has most context on its shorter side.
absl::StatusOr<std::vector<std::vector<WordTag>>> TagWords(Session& session, absl::Span<const std::vector<std::string>> sentences);

}  // namespace cloze

#endif  // CLOZE_TASKS_TAGGER_H_
