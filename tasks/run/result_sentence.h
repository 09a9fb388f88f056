// The results of a model in words.
#ifndef CLOZE_TASKS_RUN_RESULT_SENTENCE_H_
#define CLOZE_TASKS_RUN_RESULT_SENTENCE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/json.h"

namespace cloze {

// Returns one or two sentences: those of `result`, the result.json of a finished run, or else about
// `metrics`, those of metrics.json: "Right on 94.1 % of 660 held-out texts. ...". "" if neither has
// any. `items`: what is classified, "texts" or "words".
std::string ResultSentence(
    const Json& metrics, const std::string& items, const Json& result = Json());

// Returns the names of the metrics in the text of metrics.json, in the order of the file; none if
// it is damaged. The temperature, which is fitted, is left out.
std::vector<std::string> MetricNames(absl::string_view metrics_json);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_RESULT_SENTENCE_H_
