// The context of an export: the inputs of a model as values of an ONNX graph.
#ifndef CLOZE_ENCODER_MODULES_GRAPH_PASS_H_
#define CLOZE_ENCODER_MODULES_GRAPH_PASS_H_

#include <functional>

#include "core/tensor/param_store.h"
#include "encoder/graph/graph.h"

namespace cloze {

class RelativeEmbedding;

// Names of the dimensions B and S of values.
inline constexpr char kBatchSize[] = "batch_size", kSequenceLength[] = "sequence_length";

// The inputs of Export, as Pass holds those of Forward: B padded sequences of S tokens. There is no
// LoRA, no dropout and no target. Only encoders can be exported.
struct GraphPass {
  const ParamStore& params;
  OnnxGraph& graph;
  Value ids = {}, types = {};  // [B, S] int64; types: empty in models without
  Value positions = {};        // [S] int64: 0 ... S - 1
  Value tokens = {};           // [B, S] f32: 1 for a token, 0 for padding
  Value mask = {};  // [B, 1, 1, S] f32, added to scores: 0, or for padding the lowest float
  const RelativeEmbedding* relative = nullptr;  // null: no relative positions
  std::function<bool(const Param&)> int8 = {};  // true for weights of products in int8

  // Return a parameter as a constant with its name: as it is, or a vector [cols].
  Value value(ParamId id) const { return graph.Matrix(params.param(id).name, params.value(id)); }
  Value vector(ParamId id) const {
    const ConstMat v = params.value(id);
    return graph.Vector(params.param(id).name, absl::MakeConstSpan(v.f32(), v.cols));
  }
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_GRAPH_PASS_H_
