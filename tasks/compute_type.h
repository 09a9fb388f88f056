// The type of activations in a pass.
#ifndef CLOZE_TASKS_COMPUTE_TYPE_H_
#define CLOZE_TASKS_COMPUTE_TYPE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "core/ops/matmul.h"
#include "proto/training.pb.h"

namespace cloze {

enum class Use { kTraining, kInference };
// Returns the type of activations for `compute`. AUTO is bf16 for training where that is faster;
// for inference it is f32, whose results agree with other programs to the fifth digit.
inline DType ComputeOf(RuntimeSpec::Compute compute, Use use) {
  const bool bf16 = compute == RuntimeSpec::AUTO ? Bf16IsFaster() && use == Use::kTraining
                                                 : compute == RuntimeSpec::BF16;
  return bf16 ? DType::kBf16 : DType::kF32;
}

// What a user asks of inference: "auto", "f32", "bf16" or "int8". Returns the type of activations,
// except for int8; and if products are in int8, without a value if the folder says so.
inline DType InferenceType(absl::string_view compute) {
  return ComputeOf(compute == "bf16" ? RuntimeSpec::BF16 : RuntimeSpec::AUTO, Use::kInference);
}
inline std::optional<bool> WantsInt8(absl::string_view compute) {
  return compute == "auto" ? std::nullopt : std::optional<bool>(compute == "int8");
}

// The type of activations in the evaluations of a run: that of inference, so that a run reports
// what the users of its model get.
inline DType EvaluationType() { return ComputeOf(RuntimeSpec::AUTO, Use::kInference); }

}  // namespace cloze

#endif  // CLOZE_TASKS_COMPUTE_TYPE_H_
