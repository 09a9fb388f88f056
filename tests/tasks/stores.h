// Stores of each task from specs of the task alone.
#ifndef CLOZE_TESTS_TASKS_STORES_H_
#define CLOZE_TESTS_TASKS_STORES_H_

#include <string>
#include <vector>

#include "tasks/task.h"

namespace cloze {

inline absl::StatusOr<BuiltStore> BuildWith(const TaskSpec& spec, const DataSpec& data,
    const std::vector<std::string>& labels, const Tokenizer& tokenizer, const BuildOptions& options,
    DataUse use = DataUse::kTraining) {
  const auto task = MakeTask(spec);
  ModelConfig config;
  config.labels = labels;
  const bool masks = tokenizer.special().mask >= 0;  // else Build has to refuse it
  if (masks || !spec.has_masked_lm()) RETURN_IF_ERROR(task->Bind(config, &tokenizer, 1));
  return task->Build(data, use, tokenizer, options);
}

inline absl::StatusOr<BuiltStore> BuildMaskedLm(const DataSpec& data, const MaskedLmSpec& task,
    const Tokenizer& tokenizer, const BuildOptions& options) {
  TaskSpec spec;
  *spec.mutable_masked_lm() = task;
  return BuildWith(spec, data, {}, tokenizer, options);
}

inline absl::StatusOr<BuiltStore> BuildClassification(const DataSpec& data,
    const SequenceClassificationSpec& task, const std::vector<std::string>& labels,
    const Tokenizer& tokenizer, const BuildOptions& options) {
  TaskSpec spec;
  *spec.mutable_sequence_classification() = task;
  return BuildWith(spec, data, labels, tokenizer, options);
}

inline absl::StatusOr<BuiltStore> BuildTagging(const DataSpec& data, const TokenTaggingSpec& task,
    const std::vector<std::string>& labels, const Tokenizer& tokenizer, const BuildOptions& options,
    DataUse use = DataUse::kTraining) {
  TaskSpec spec;
  *spec.mutable_token_tagging() = task;
  return BuildWith(spec, data, labels, tokenizer, options, use);
}

}  // namespace cloze

#endif  // CLOZE_TESTS_TASKS_STORES_H_
