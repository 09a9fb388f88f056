// Predicts the memory and time of a run.
#ifndef CLOZE_TASKS_JOBS_PLAN_H_
#define CLOZE_TASKS_JOBS_PLAN_H_

#include <atomic>
#include <string>
#include <vector>

#include "tasks/training/default_settings.h"
#include "tasks/training/memory.h"

namespace cloze {

struct PlanOptions {
  std::string scratch;  // an empty folder for temporary files
  const std::atomic<bool>* stop = nullptr;
  double probe_seconds = 3;
  int ranks = 1;       // of cloze-mpi, on machines like this one
  double network = 0;  // bits per second between ranks; 0: no limit
};

// Size of the training or validation data, estimated from its beginning if it is large and not in
// the token cache.
struct DataEstimate {
  double sequences = 0, tokens = 0;
  double examples = 0;          // that max_examples counts: texts, of language models sequences
  int64_t bytes = 0, read = 0;  // size of the files, and bytes that the estimate is based on
};

// The speed of this machine in training a model, measured with a few real passes.
struct Speed {
  double tokens_per_second = 0;             // of forward and backward passes
  double update_seconds = 0;                // of each optimizer step: norm, AdamW
  double packing_seconds = 0;               // of the weights, after each step
  double evaluation_tokens_per_second = 0;  // of forward passes
  int64_t pass_tokens = 0;                  // in the largest pass
  double seconds = 0;                       // spent measuring
};

struct MemoryUse {
  int64_t micro_tokens = 0;
  std::string note;  // about micro_tokens; may be empty
  TrainingNeed need;
  int64_t limit = 0;  // bytes
  absl::Status fits;  // kLimit with the reason if not; the rest of the plan is unknown then
};

struct RunPlan {
  // Model.
  ParamCount parameters;
  DType compute = DType::kF32;
  MemoryUse memory;
  // The choices of the run for what the spec does not set.
  std::vector<ChosenSetting> settings;
  // Run; under a time budget as far as it is expected to get.
  DataEstimate train, validation;
  double steps = 0, tokens = 0;
  double evaluations = 0;
  // Time.
  bool timed = false;  // the clock ends the run
  Speed speed;
  double step_seconds = 0, network_seconds = 0;      // of a step; the second is part of the first
  double tokens_per_second = 0;                      // of whole training steps
  double train_seconds = 0, evaluation_seconds = 0;  // if timed, the first includes the second
  double seconds() const { return train_seconds + (timed ? 0 : evaluation_seconds); }
};

// Reads the tokenizer, part of the data and the free memory, and trains for a few seconds. Writes
// only to options.scratch. Errors as Trainer::Create.
absl::StatusOr<RunPlan> PlanRun(const LoadedSpec& loaded, const PlanOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_PLAN_H_
