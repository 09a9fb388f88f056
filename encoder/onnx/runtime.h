// Runs ONNX models with ONNX Runtime, to check exports.
#ifndef CLOZE_ENCODER_ONNX_RUNTIME_H_
#define CLOZE_ENCODER_ONNX_RUNTIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// Inputs of a model, each [sequences, tokens].
struct OnnxBatch {
  int64_t sequences = 0, tokens = 0;
  std::vector<int64_t> input_ids, attention_mask;
  std::vector<int64_t> token_type_ids;  // empty: the model has none
};

struct OnnxOutput {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Returns all outputs of the model in `file` for `batch`. kNoInput if ONNX Runtime is missing, or
// its headers were when Cloze was built; kMismatch, with its message, if it refuses the model or
// the batch.
absl::StatusOr<std::vector<OnnxOutput>> RunOnnx(const std::string& file, const OnnxBatch& batch);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_RUNTIME_H_
