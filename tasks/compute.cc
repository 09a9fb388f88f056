#include "tasks/compute.h"

#include "core/ops/matmul.h"

namespace cloze {

absl::StatusOr<DType> ComputeOf(RuntimeSpec::Compute compute, Use use) {
  const bool fast = MultipliesBf16();
  if (compute == RuntimeSpec::BF16 && !fast) {
    return Error(
        Exit::kLimit, "compute bf16: this CPU has no AVX512_BF16 instructions; use f32 or auto");
  }
  if (compute == RuntimeSpec::AUTO)
    return fast && use == Use::kTraining ? DType::kBf16 : DType::kF32;
  return compute == RuntimeSpec::BF16 ? DType::kBf16 : DType::kF32;
}

}  // namespace cloze
