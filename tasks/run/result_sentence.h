// What a model has reached, in words.
#ifndef CLOZE_TASKS_RUN_RESULT_SENTENCE_H_
#define CLOZE_TASKS_RUN_RESULT_SENTENCE_H_

#include <string>

#include "core/base/json.h"

namespace cloze {

// Returns one or two sentences: those of `result`, the result.json of a finished run, or else about
// `metrics`, those of metrics.json: "Right on 94.1 % of 660 held-out texts. ...". "" if neither has
// any. `items`: what is classified, "texts" or "words".
std::string ResultSentence(
    const Json& metrics, const std::string& items, const Json& result = Json());

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_RESULT_SENTENCE_H_
