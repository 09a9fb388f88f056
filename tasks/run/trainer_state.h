// The state of a run in a checkpoint, trainer.textproto: its progress, and the spec, data and code
// that it was made with.
#ifndef CLOZE_TASKS_RUN_TRAINER_STATE_H_
#define CLOZE_TASKS_RUN_TRAINER_STATE_H_

#include <string>

#include "core/base/status.h"
#include "core/tensor/mat.h"
#include "proto/spec.h"
#include "proto/state.pb.h"
#include "tasks/data/cache.h"
#include "tasks/metrics.h"

namespace cloze {

inline constexpr char kStateName[] = "trainer.textproto";

// Writes the state into the checkpoint folder `folder`.
absl::Status WriteTrainerState(const std::string& folder, const TrainerState& state);

// Reads the state of a checkpoint. kMismatch for a newer format version; kData if it cannot be
// parsed or its numbers contradict each other.
absl::StatusOr<TrainerState> ReadTrainerState(const std::string& folder);

// Records spec, training data and code in `state`.
void DescribeRun(const TaskSpec& spec, const BuiltStore& train, DType compute, TrainerState* state);

// kMismatch, listing the fields, if `now` differs from the spec `before` of the run in `directory`
// in a field that determines the trained weights. Output, evaluation, validation, names of data
// files, threads, memory limit, recompute and the time limit of ranks do not.
absl::Status CheckSameSpec(
    const TaskSpec& before, const TaskSpec& now, const std::string& directory);

// kMismatch, naming the first changed file, unless `train` is the data of the state in
// `checkpoint`.
absl::Status CheckSameData(
    const TrainerState& state, const BuiltStore& train, const std::string& checkpoint);

// A warning if kernels, matmul library, compute type or, unless a step is one pass, the order of
// sums differ from the recorded ones, so that results will not have the same bits; else empty.
std::string CodeWarning(const TrainerState& state, DType compute, bool one_pass);

// Returns the results of the best evaluation so far; empty before the first.
MetricResults BestOf(const TrainerState& state);
// Returns the score of that evaluation; NaN before the first, and for a loss that the checkpoint of
// an earlier version lacks.
ModelScore BestScore(const TrainerState& state);
// True after evaluation.patience evaluations without a better one.
bool OutOfPatience(const TaskSpec& spec, const TrainerState& state);
// Forgets the best results, so that the next finite ones are the best. Keeps
// evaluations_without_best.
void ForgetBest(TrainerState* state);
// Records the results of the best model, of `step`, with the value of the metric that chose it.
void SetBest(const MetricResults& results, int64_t step, double value, TrainerState* state);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_TRAINER_STATE_H_
