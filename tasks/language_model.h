// What masked_lm and causal_lm share: sequences cut from documents, the loss of a model that knows
// only frequencies, the evaluation, and the likeliest tokens.
#ifndef CLOZE_TASKS_LANGUAGE_MODEL_H_
#define CLOZE_TASKS_LANGUAGE_MODEL_H_

#include <memory>

#include "tasks/build.h"
#include "tasks/data/readers.h"

namespace cloze {

// How documents become sequences of at most max_tokens: <class> tokens [<sep>].
struct DocumentRules {
  int32_t max_tokens = 0;
  bool append_sep = true;
  bool ends_only = false;  // <class> only at the beginning of a document, <sep> only at its end
};
// Cuts documents into sequences and writes them: full ones, except that the last two of a document
// share the rest evenly.
absl::Status FillWithDocuments(const DataSpec& data, const DocumentRules& rules,
    const Tokenizer& tokenizer, const BuildOptions& options, ExampleStoreWriter* writer,
    DataStats* stats);

// Returns the entropy, in nats, of the frequencies of tokens: Task::ChanceLoss.
absl::StatusOr<double> TokenEntropy(const ExampleStore& train, const Tokenizer& tokenizer);

// Returns an evaluation with MaskedLmMetric of text with these statistics.
std::unique_ptr<Evaluation> NewLanguageModelEvaluation(
    const Task& task, const Model& model, const DataStats& stats);

// Returns the metrics of that evaluation.
std::vector<Metric> LanguageModelMetrics();

// Returns the `top` likeliest tokens of a row of logits, as [{"token", "id", "score"}, ...].
OrderedJson LikeliestTokens(const Tokenizer& tokenizer, ConstMat logits, int64_t row, int64_t top);

}  // namespace cloze

#endif  // CLOZE_TASKS_LANGUAGE_MODEL_H_
