// The task and the labelled data of an evaluation.
#ifndef CLOZE_TOOLS_EVALUATION_H_
#define CLOZE_TOOLS_EVALUATION_H_

#include <memory>
#include <string>
#include <vector>

#include "proto/spec.h"
#include "tasks/task.h"
#include "tools/command.h"

namespace cloze {

// What the model was trained on: the task, and how its data are read.
struct TaskAndSpec {
  std::unique_ptr<Task> task;
  LoadedSpec loaded;
};

// Reads them from the spec of the run in `folder`, or of the run whose checkpoint it is; without
// one (a folder from elsewhere), from its config.json. kMismatch if the model has no head.
absl::StatusOr<TaskAndSpec> TaskOf(const std::string& folder, const ModelConfig& config);

// Adds `--set`, whose values are the `overrides` of SetData.
void AddDataSet(Command& command, std::vector<std::string>* overrides);

// Puts the files to evaluate into the spec's validation, then applies `overrides` of its fields.
absl::Status SetData(const std::vector<std::string>& files,
    const std::vector<std::string>& overrides, LoadedSpec* loaded);

}  // namespace cloze

#endif  // CLOZE_TOOLS_EVALUATION_H_
