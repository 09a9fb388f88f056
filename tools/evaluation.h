// The task and the labelled data of an evaluation.
#ifndef CLOZE_TOOLS_EVALUATION_H_
#define CLOZE_TOOLS_EVALUATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/spec.h"
#include "tasks/task.h"
#include "tools/command.h"
#include "tools/process.h"

namespace cloze {

// The labelled data of a model.
struct LabelledData {
  std::unique_ptr<Task> task;
  LoadedSpec loaded;                   // of the run; its validation names the data
  std::optional<ScratchFolder> cache;  // of `built`
  std::optional<BuiltStore> built;

  // Reads the task and the spec of the run in `folder`, or of the run whose checkpoint it is;
  // without one (a folder from elsewhere), of its config.json. Then SetData. kMismatch if the model
  // has no head.
  static absl::StatusOr<LabelledData> Open(const std::string& folder, const ModelConfig& config,
      const std::vector<std::string>& files, const std::vector<std::string>& overrides);
  // Binds the task to the model, and builds the store of the data. Errors of Task::Bind and
  // BuildStore; kInterrupted by signals.
  absl::Status Build(const ModelConfig& config, const Tokenizer* tokenizer);
};

// Adds `--set`, whose values are the `overrides` of SetData.
void AddDataSet(Command& command, std::vector<std::string>* overrides);

// Puts the files to evaluate into the spec's validation, then applies `overrides` of its fields.
absl::Status SetData(const std::vector<std::string>& files,
    const std::vector<std::string>& overrides, LoadedSpec* loaded);

}  // namespace cloze

#endif  // CLOZE_TOOLS_EVALUATION_H_
