// about.json of a run: its data, and the machine on which it began, for `cloze report`.
#ifndef CLOZE_TASKS_TRAINING_RUN_INFO_H_
#define CLOZE_TASKS_TRAINING_RUN_INFO_H_

#include <string>

#include "tasks/training/run_inputs.h"

namespace cloze {

// Writes the file atomically unless it exists. Counts at most 100,000 examples, evenly spaced.
// `program`: name and version.
absl::Status WriteRunInfo(
    const std::string& path, const RunInputs& inputs, const std::string& program);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_RUN_INFO_H_
