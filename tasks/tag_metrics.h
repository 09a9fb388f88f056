// Evaluation of token tagging.
#ifndef CLOZE_TASKS_TAG_METRICS_H_
#define CLOZE_TASKS_TAG_METRICS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "tasks/task.h"

namespace cloze {

// The metrics of TaggingMetric, the loss and the table `errors`, with the surest wrong word of at
// most `errors` sentences. `unseen`: names of further labels of the data. `viterbi`: see
// TagDecoder. `last`: words are labelled at their last pieces. `tokenizer` (may be null) must
// outlive the evaluation.
std::unique_ptr<Evaluation> NewTagMetrics(const Model& model,
    const std::vector<std::string>& unseen, bool viterbi, int errors, const Tokenizer* tokenizer,
    bool last);

}  // namespace cloze

#endif  // CLOZE_TASKS_TAG_METRICS_H_
