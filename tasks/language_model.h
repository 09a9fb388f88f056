// Base of masked_lm and causal_lm: sequences cut from documents, the evaluation, and the
// most likely tokens.
#ifndef CLOZE_TASKS_LANGUAGE_MODEL_H_
#define CLOZE_TASKS_LANGUAGE_MODEL_H_

#include <memory>

#include "tasks/data/readers.h"
#include "tasks/store_builder.h"
#include "tasks/task.h"

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

// A task that learns the tokens of unlabelled text.
class LanguageModelTask : public Task {
 public:
  bool pretrains() const override { return true; }
  std::vector<Metric> metrics() const override;
  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<DocumentPiece>(data, Labels::kIgnored);
  }
  // The entropy of the frequencies of tokens.
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override;
  // MaskedLmMetric of text with these statistics.
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions& options) const override;

 protected:
  using Task::Task;
};

// Returns the `top` likeliest tokens of a row of logits, as [{"token", "id", "score"}, ...].
OrderedJson LikeliestTokens(const Tokenizer& tokenizer, ConstMat logits, int64_t row, int64_t top);

}  // namespace cloze

#endif  // CLOZE_TASKS_LANGUAGE_MODEL_H_
