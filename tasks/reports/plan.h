// What a run will need and how long it will take, told without it.
#ifndef CLOZE_TASKS_REPORTS_PLAN_H_
#define CLOZE_TASKS_REPORTS_PLAN_H_

#include <atomic>
#include <string>

#include "tasks/reports/probe.h"
#include "tasks/training/memory.h"

namespace cloze {

struct PlanOptions {
  std::string scratch;  // an empty folder; what is written there is not needed afterwards
  const std::atomic<bool>* stop = nullptr;
  double probe_seconds = 3;
};

// Of the training or validation data; from its beginning where all of it is long and in no token
// cache.
struct DataEstimate {
  double sequences = 0, tokens = 0;
  int64_t bytes = 0, read = 0;  // of the files, and how many of them the estimate is by
};

struct RunPlan {
  // Of the model.
  int64_t parameters = 0, trained = 0;
  DType compute = DType::kF32;
  // Of memory.
  int64_t micro_tokens = 0;
  std::string note;  // about micro_tokens; may be empty
  TrainingNeed need;
  int64_t limit = 0;  // bytes
  absl::Status fits;  // kLimit with the reason: then nothing of the following is known
  // Of the run; under a time budget as far as it is expected to come.
  DataEstimate train, validation;
  double steps = 0, tokens = 0;
  double evaluations = 0;
  // Of the time.
  bool timed = false;  // the clock ends the run
  Speed speed;
  double tokens_per_second = 0;                      // of whole training steps
  double train_seconds = 0, evaluation_seconds = 0;  // under a time budget both are in the first
};

// Reads the spec's tokenizer, some of its data, and the memory that is free; trains for some
// seconds. Leaves no trace but in options.scratch. Errors as Trainer::Create's.
absl::StatusOr<RunPlan> PlanRun(const LoadedSpec& loaded, const PlanOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_REPORTS_PLAN_H_
