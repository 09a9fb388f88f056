// Whether the parts of a spec fit together: task, data, model and tokenizer.
#ifndef CLOZE_TASKS_MODEL_FIT_H_
#define CLOZE_TASKS_MODEL_FIT_H_

#include <string>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/spec.h"
#include "tasks/task.h"

namespace cloze {

// The field of the spec that says where the tokenizer is.
std::string TokenizerField(const TaskSpec& spec);

// Adds the place of `field` to an error about the spec (where files are, how they are read); errors
// about the content of a file have a place already.
absl::Status AtData(const LoadedSpec& loaded, const std::string& field, const absl::Status& status);

// Returns an error unless the task fits the kind of model, the vocabulary its embedding table, and
// the longest sequence its positions.
absl::Status CheckFit(const LoadedSpec& loaded, const Task& task, const ModelConfig& config,
    const Tokenizer& tokenizer);

// Builds the store of `data`, the spec's train or validation, for the model of `config`. Errors
// name the place in the spec; kMismatch or kSpec if tokens or lengths do not fit the model.
absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_MODEL_FIT_H_
