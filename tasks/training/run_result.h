// Files of a run for `cloze report`: about.json at its start, result.json at its end.
#ifndef CLOZE_TASKS_TRAINING_RUN_RESULT_H_
#define CLOZE_TASKS_TRAINING_RUN_RESULT_H_

#include <cstdint>
#include <string>

#include "core/base/json.h"
#include "tasks/baselines.h"
#include "tasks/training/run_inputs.h"

namespace cloze {

// Writes about.json, the data of a run and the machine on which it began, atomically unless the
// file exists. Counts at most 100,000 examples, evenly spaced. `program`: name and version.
absl::Status WriteRunInfo(
    const std::string& path, const RunInputs& inputs, const std::string& program);

// File of a finished run that has validation data and baselines.
inline constexpr char kResultName[] = "result.json";

// Describes `best`, the results of the best model of a run of `steps` steps: {"sentence",
// "warning", "metric", "value", "examples", "unit": "rows" or "words", "baselines":
// {"most_frequent", "words"}}; null if the task has no baselines. The sentence is like "right
// on 94.1 % of 660 held-out rows (most frequent class 27 %, words alone 88 %)"; the warning is
// null, or that the model gives the same answer to every text. Numbers that are not defined are
// NaN.
OrderedJson DescribeResult(
    const TaskSpec& spec, const MetricResults& best, const Baselines& baselines, int64_t steps);

// Returns a note with remedies if `loss`, the mean of the last steps, is at least 97 % of `chance`
// (Task::ChanceLoss); else "". `labels`: number of labels, or 0. `steps`: as for LearningAdvice.
std::string PlateauNote(
    double loss, double chance, const TaskSpec& spec, size_t labels = 0, int64_t steps = 0);

// Returns what to change in a run of `steps` steps (0: timed, or unknown) that fine-tunes and whose
// model ignores its input: first the number of steps if it is small, then the learning rate.
std::string LearningAdvice(const TaskSpec& spec, int64_t steps);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_RUN_RESULT_H_
