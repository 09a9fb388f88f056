// ONNX files.
#ifndef CLOZE_ENCODER_ONNX_MODEL_FILE_H_
#define CLOZE_ENCODER_ONNX_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "encoder/graph/graph.h"

namespace cloze {

// Writes folder/model.onnx. If matrices and vectors have more than `max_bytes`, they go to
// folder/model.onnx_data.
absl::Status WriteOnnx(
    OnnxGraph& graph, int64_t opset, int64_t max_bytes, const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_MODEL_FILE_H_
