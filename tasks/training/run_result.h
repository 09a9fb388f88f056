// What a run has reached, in a sentence for the user and in result.json.
#ifndef CLOZE_TASKS_TRAINING_RUN_RESULT_H_
#define CLOZE_TASKS_TRAINING_RUN_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "proto/task.pb.h"
#include "tasks/baselines.h"
#include "tasks/metrics.h"

namespace cloze {

// File of a finished run that has validation data and baselines.
inline constexpr char kResultName[] = "result.json";

struct RunResult {
  // "right on 94.1 % of 660 held-out rows (most frequent class 27 %, words alone 88 %)"; empty: the
  // task has no baselines.
  std::string sentence;
  std::string warning;  // empty, or that the model gives the same answer to every text
  // {"sentence", "warning", "metric", "value", "examples", "unit": "rows" or "words", "baselines":
  // {"most_frequent", "words"}}; null where not defined.
  OrderedJson json;
};

// Describes `best`, the results of the best model of a run of `steps` steps.
RunResult DescribeResult(
    const TaskSpec& spec, const MetricResults& best, const Baselines& baselines, int64_t steps);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_RUN_RESULT_H_
