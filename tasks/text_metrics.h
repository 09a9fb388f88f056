// Evaluation of sequence classification, and the conversion of logits to decisions.
#ifndef CLOZE_TASKS_TEXT_METRICS_H_
#define CLOZE_TASKS_TEXT_METRICS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/task.h"

namespace cloze {

// The way from logits to probabilities and decisions; stored in the model folder.
struct Decision {
  SequenceClassificationSpec::Kind kind = SequenceClassificationSpec::SINGLE_LABEL;
  float temperature = 1;          // divides the logits
  std::vector<float> thresholds;  // MULTI_LABEL: of each label

  // Replaces the logits of a text by its probabilities; REGRESSION: keeps the number.
  void ToProbabilities(std::vector<float>* logits) const;
  // MULTI_LABEL: true for labels whose probability is at least their threshold.
  std::vector<bool> Chosen(const std::vector<float>& probabilities) const;
};

// Returns the mean of the logits of a text's windows.
std::vector<float> MeanLogits(const TextLogits& text);

// The metrics of texts with this spec. With options.fit, first fits the temperature (`calibrate`)
// and the thresholds (`thresholds: BEST`) to the evaluated texts and adds them as tables. Texts in
// the table `errors`, at most options.errors, are named by their number from 1. `spec`, `labels`
// and `tokenizer` (may be null) must outlive the evaluation.
std::unique_ptr<Evaluation> NewTextMetrics(const Model& model,
    const SequenceClassificationSpec& spec, const Decision& decision, const DecodeOptions& options,
    const std::vector<std::string>& labels, const Tokenizer* tokenizer);

}  // namespace cloze

#endif  // CLOZE_TASKS_TEXT_METRICS_H_
