// One label for every word of a sentence, however long it is.
#ifndef CLOZE_TASKS_INFERENCE_TAGGER_H_
#define CLOZE_TASKS_INFERENCE_TAGGER_H_

#include <string>
#include <vector>

#include "tasks/inference/session.h"
#include "tasks/tag_decoder.h"
#include "tasks/windows.h"

namespace cloze {

// Tags sentences of words that are split already: result[s][w] belongs to sentences[s][w]; no word
// is ever left out. A word is read off its first piece, a word without pieces off <unk>. A sentence
// longer than the windows that the model was trained on is cut at word borders into windows that
// overlap by half; the logits of each word come from the window in which it has most context on its
// shorter side, and the whole sentence is decoded at once. Adds to *counts. kMismatch when the
// model is no tagger, has no tokenizer, or has no room for a word.
absl::StatusOr<std::vector<std::vector<WordTag>>> TagWords(Session& session,
    const TagDecoder& decoder, absl::Span<const std::vector<std::string>> sentences,
    WindowCounts* counts);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_TAGGER_H_
