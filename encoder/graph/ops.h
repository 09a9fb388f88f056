// Ops as nodes of a graph. B sequences of S tokens; `positions` [S] are 0 ... S - 1.
#ifndef CLOZE_ENCODER_GRAPH_OPS_H_
#define CLOZE_ENCODER_GRAPH_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "core/ops/activation.h"
#include "encoder/graph/graph.h"

namespace cloze {

// Returns x [..., in] w^T for w [out, in]. With `int8`, weights have a scale per output, and x a
// scale and a zero point. ONNX Runtime fuses these nodes.
Value AddProduct(OnnxGraph& graph, const Value& x, const std::string& name, ConstMat w, bool int8);

// Returns the halves of the last dimension of x, 2 * size, by the names `first` and `second`.
std::pair<Value, Value> AddHalves(
    OnnxGraph& graph, const Value& x, int64_t size, const Value& first, const Value& second);

// Returns act(x).
Value AddActivation(OnnxGraph& graph, ActivationKind kind, const Value& x);

// Returns x [B, heads, S, dim] rotated by position * base^(-2m / dim), see RotaryForward; positions
// are below `max_positions`.
Value AddRotation(OnnxGraph& graph, const Value& x, const Value& positions, int64_t max_positions,
    int64_t dim, float base);

// Returns query i minus key j [S, S].
Value AddDistances(OnnxGraph& graph, const Value& positions);

// Return [B, H] for x [B, S, H]: the first token, or the mean of those whose `tokens` [B, S] is 1,
// not 0.
Value AddFirst(OnnxGraph& graph, const Value& x);
Value AddMean(OnnxGraph& graph, const Value& x, const Value& tokens);
// `mask` [B, 1, 1, S]: 0, or the lowest float for padding.
Value AddMax(OnnxGraph& graph, const Value& x, const Value& mask);

}  // namespace cloze

#endif  // CLOZE_ENCODER_GRAPH_OPS_H_
