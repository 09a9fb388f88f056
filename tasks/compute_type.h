// The type of activations in a pass.
#ifndef CLOZE_TASKS_COMPUTE_TYPE_H_
#define CLOZE_TASKS_COMPUTE_TYPE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "core/ops/matmul.h"
#include "proto/training.pb.h"

namespace cloze {

// Returns the type in training. AUTO is bf16 where that is faster.
inline DType TrainingType(RuntimeSpec::Compute compute) {
  const bool bf16 = compute == RuntimeSpec::AUTO ? Bf16IsFaster() : compute == RuntimeSpec::BF16;
  return bf16 ? DType::kBf16 : DType::kF32;
}

// The user's "auto", "f32", "bf16" or "int8" for inference. Return the type of activations, except
// for int8: "auto" is f32, whose results agree with other programs to the fifth digit; and if
// products are in int8, without a value if the folder says so.
inline DType InferenceType(absl::string_view compute) {
  return compute == "bf16" ? DType::kBf16 : DType::kF32;
}
inline std::optional<bool> WantsInt8(absl::string_view compute) {
  return compute == "auto" ? std::nullopt : std::optional<bool>(compute == "int8");
}

// The type of activations in the evaluations of a run: that of inference, so that a run reports
// what the users of its model get.
inline DType EvaluationType() { return InferenceType("auto"); }

}  // namespace cloze

#endif  // CLOZE_TASKS_COMPUTE_TYPE_H_
