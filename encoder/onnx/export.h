// Models as ONNX files, with the arithmetic of the forward pass in f32 or partly in int8.
#ifndef CLOZE_ENCODER_ONNX_EXPORT_H_
#define CLOZE_ENCODER_ONNX_EXPORT_H_

#include <cstdint>
#include <string>

#include "encoder/model.h"

namespace cloze {

// The vector of each text that an exported encoder without a head returns in addition.
enum class OnnxPool { kNone, kClass, kMean, kMax };

struct OnnxOptions {
  OnnxPool pool = OnnxPool::kNone;
  bool normalize = true;  // the pooled vector
  int64_t opset = 17;     // version of ONNX's operators
  // Write matrices and vectors to model.onnx_data. They always go there if they are larger than
  // 1.8 GB, because protobuf cannot hold more than 2 GB.
  bool external_data = false;
  bool int8 = false;  // compute the linear layers of the blocks (IsInt8Layer) in int8
};

// Returns kMismatch if the model in `folder` cannot be exported: if it is a decoder.
absl::Status CheckExportable(const ModelConfig& config, const std::string& folder);

// Writes folder/model.onnx. Inputs, int64 [batch_size, sequence_length]: input_ids, attention_mask
// (1: a token, 0: padding, which follows all tokens; with positions.after_pad it may also precede
// them), and token_type_ids if the model has types. Outputs, f32: logits, of a text [batch_size,
// labels], of each token [batch_size, sequence_length, labels or vocab]; start_logits and
// end_logits; or last_hidden_state, with `pool` also sentence_embedding [batch_size, hidden]. With
// a CRF, logits are its emissions. In int8, weights have a scale per output, and activations a
// scale and a zero point per tensor, computed in each run, so that results depend on the batch.
// Requires CheckExportable.
absl::Status ExportOnnx(const Model& model, const OnnxOptions& options, const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_EXPORT_H_
