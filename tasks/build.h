// Builds the store of a task, and helps tasks to do so.
#ifndef CLOZE_TASKS_BUILD_H_
#define CLOZE_TASKS_BUILD_H_

#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/spec.h"
#include "tasks/task.h"

namespace cloze {

// Builds the store of `data`, the spec's train or validation, for the model of `config`. Errors
// name the place in the spec; kMismatch or kSpec if tokens or lengths do not fit the model.
absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options);

// Lines for the user about the content of a store.
std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built);

// The field of the spec that says where the tokenizer is.
std::string TokenizerField(const TaskSpec& spec);

// Adds the place of `field` to an error about the spec (where files are, how they are read); errors
// about the content of a file have a place already.
absl::Status AtData(const LoadedSpec& loaded, const std::string& field, const absl::Status& status);

// Special tokens that a task needs besides <class>.
struct NeededTokens {
  bool sep = true, mask = false, unk = false;
};
// kMismatch if the tokenizer lacks one of them.
absl::Status RequireTokens(const Tokenizer& tokenizer, NeededTokens needed);

// Describes a store; the task may add to its key.
StoreKind StoreKindOf(const std::string& name, const Tokenizer& tokenizer,
    const std::vector<std::string>& labels, int32_t max_tokens, bool append_sep);

// The last argument of RunPipeline: reports progress and checks for a stop after each batch.
template <typename Reader>
auto Ticker(const Reader& reader, const BuildOptions& options) {
  return [&reader, &options] {
    if (options.progress) options.progress(reader.position(), reader.total_bytes());
    return CheckStop(options);
  };
}

}  // namespace cloze

#endif  // CLOZE_TASKS_BUILD_H_
