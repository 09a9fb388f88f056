// Sample inputs and outputs, saved with a model to check later that it still computes the same.
//
// samples.safetensors holds `lengths` I32 [n], `ids` I32 [sum of lengths] and `outputs` F32 [n,
// columns]. The ids are generated, not taken from any text. Each row of `outputs` has the first 32
// logits of one token: the class token for text classifiers, else the middle token. A model without
// a head has hidden values instead. Metadata: `compute` (f32 or bf16), and the `kernels` and
// `matmul` library that computed the outputs.
#ifndef CLOZE_TASKS_RUN_SAMPLES_H_
#define CLOZE_TASKS_RUN_SAMPLES_H_

#include <string>

#include "core/base/status.h"
#include "encoder/model.h"

namespace cloze {

inline constexpr char kSamplesName[] = "samples.safetensors";

// Computes and writes samples.safetensors of `model` into `folder`. kInternal if outputs are not
// finite.
absl::Status WriteSamples(Model& model, DType compute, const std::string& folder);

// Computes the samples of `folder` with `model`, which was loaded from there, and returns the
// largest difference of an output. kMismatch if it exceeds 0 with the same kernels and matmul
// library, else 1e-4 (1 + |output|), or 0.1 (1 + |output|) with bf16. kNoInput or kData for the
// file itself.
absl::StatusOr<double> CheckSamples(Model& model, const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_SAMPLES_H_
