// Sample inputs that are kept with a model, and what it made of them: whoever has the folder can
// see whether it still computes the same.
//
// samples.safetensors holds `lengths` I32 [n], `ids` I32 [sum of lengths], and `outputs` F32 [n,
// columns]: for each sequence the logits of one token (<class> for text classifiers, else the
// middle one), the first 32 at most; for a model without a head its last hidden state instead. The
// inputs are made up from numbers, not from anybody's text. Metadata: `compute` (f32 or bf16),
// `kernels` and `matmul`, with which the outputs were computed.
#ifndef CLOZE_TASKS_RUN_SAMPLES_H_
#define CLOZE_TASKS_RUN_SAMPLES_H_

#include <string>

#include "core/base/status.h"
#include "encoder/model.h"

namespace cloze {

inline constexpr char kSamplesName[] = "samples.safetensors";

// Computes and writes samples.safetensors of `model` into `folder`.
absl::Status WriteSamples(Model& model, DType compute, const std::string& folder);

// Computes the samples of `folder` again with `model`, which was loaded from there, and returns the
// largest difference of an output. kMismatch when it is too large: not 0 with the instruction set
// and matmul library that wrote them; else over 1e-4 (1 + |output|), or 0.1 (1 + |output|) where
// bf16 is involved. kNoInput and kData for the file itself.
absl::StatusOr<double> CheckSamples(Model& model, const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_SAMPLES_H_
