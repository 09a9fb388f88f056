// Nodes for the positions of tokens, from `range` [S], the numbers 0 ... S - 1 of S tokens.
#ifndef CLOZE_ENCODER_ONNX_POSITIONS_H_
#define CLOZE_ENCODER_ONNX_POSITIONS_H_

#include <string>

#include "encoder/modules/config.h"
#include "encoder/onnx/graph.h"

namespace cloze {

// Adds name + "_cos" and name + "_sin" [S, dim]: cosines and sines of the rotation with this base,
// each half of a row twice.
void AddRotations(const std::string& name, const ModelConfig& config, float base,
    const Value& range, OnnxGraph* graph);

// Returns the rows of the position table [S] or, of a family with positions_after_pad, [B, S] for
// `ids` [B, S]: there pad tokens have row pad_id, the others count from pad_id + 1 without them.
Value AddPositionRows(
    const ModelConfig& config, const Value& ids, const Value& range, OnnxGraph* graph);

// Returns the row of the table of relative positions for query i and key j [S, S].
Value AddDistanceRows(const ModelConfig& config, const Value& range, OnnxGraph* graph);

// Returns query i minus key j [S, S].
Value AddDistances(const Value& range, OnnxGraph* graph);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_POSITIONS_H_
