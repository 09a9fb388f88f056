// Base of masked_lm and causal_lm: sequences cut from documents, the evaluation, and the
// most likely tokens.
#ifndef CLOZE_TASKS_LANGUAGE_MODEL_H_
#define CLOZE_TASKS_LANGUAGE_MODEL_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tasks/data/readers.h"
#include "tasks/store_builder.h"
#include "tasks/task.h"

namespace cloze {

// The form of sequences that are cut from documents: <class> tokens [<sep>].
struct DocumentRules {
  bool append_sep = true;
  bool ends_only = false;  // <class> only at the beginning of a document, <sep> only at its end
};

// A task that learns the tokens of unlabelled text.
class LanguageModelTask : public Task {
 public:
  int32_t max_tokens() const override { return max_tokens_; }
  bool pretrains() const override { return true; }
  std::vector<Metric> metrics() const override;
  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<DocumentPiece>(data, Labels::kIgnored);
  }
  void Restore(const ModelConfig&, JsonFields&, int64_t longest) override {
    max_tokens_ = static_cast<int32_t>(std::min<int64_t>(longest, max_tokens_));
  }
  // The entropy of the frequencies of tokens.
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override;
  // MaskedLmMetric of text with these statistics.
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions& options) const override;

 protected:
  LanguageModelTask(std::string name, HeadKind head, std::string command, int32_t max_tokens)
      : Task(std::move(name), head, std::move(command)), max_tokens_(max_tokens) {}
  // Builds or opens the store of `data`, cut into sequences of max_tokens(), except that the last
  // two of a document share the rest evenly.
  absl::StatusOr<BuiltStore> BuildSequences(const DataSpec& data, const DocumentRules& rules,
      const Tokenizer& tokenizer, const BuildOptions& options) const;

 private:
  int32_t max_tokens_;
};

// Returns the `top` likeliest tokens of a row of logits, as [{"token", "id", "score"}, ...].
OrderedJson LikeliestTokens(const Tokenizer& tokenizer, ConstMat logits, int64_t row, int64_t top);

}  // namespace cloze

#endif  // CLOZE_TASKS_LANGUAGE_MODEL_H_
