// Selects the type of activations.
#ifndef CLOZE_TASKS_COMPUTE_H_
#define CLOZE_TASKS_COMPUTE_H_

#include "core/base/status.h"
#include "core/tensor/mat.h"
#include "proto/task.pb.h"

namespace cloze {

enum class Use { kTraining, kInference };

// Returns the type for `compute`; kLimit if this CPU lacks the instructions for bf16. AUTO is bf16
// for training where the CPU has them; for inference it is f32, whose results agree with other
// programs to the fifth digit.
absl::StatusOr<DType> ComputeOf(RuntimeSpec::Compute compute, Use use);

}  // namespace cloze

#endif  // CLOZE_TASKS_COMPUTE_H_
