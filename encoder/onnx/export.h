// Models as ONNX graphs, with the arithmetic of the forward pass in f32 or partly in int8.
#ifndef CLOZE_ENCODER_ONNX_EXPORT_H_
#define CLOZE_ENCODER_ONNX_EXPORT_H_

#include "encoder/model.h"
#include "encoder/onnx/graph.h"

namespace cloze {

// The vector of each text that an exported encoder without a head returns in addition.
enum class OnnxPool { kNone, kClass, kMean, kMax };

// Returns the graph of `model`. Inputs, int64 [batch_size, sequence_length]: input_ids,
// attention_mask (1: a token, 0: padding, which follows all tokens; with positions_after_pad it may
// also precede them), and token_type_ids if the
// model has types. Outputs, f32: logits, of a text [batch_size, labels], of each token [batch_size,
// sequence_length, labels or vocab]; start_logits and end_logits; or last_hidden_state, with `pool`
// also sentence_embedding [batch_size, hidden], of length 1 with `normalize`. With a CRF, logits
// are its emissions. With `int8`, the linear layers of the blocks (IsInt8Layer) are products of
// int8: weights with a scale per output, activations with a scale and a zero point per tensor,
// computed in each run, so that results depend on the batch.
OnnxGraph ExportOnnx(const Model& model, OnnxPool pool, bool normalize, bool int8);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_EXPORT_H_
