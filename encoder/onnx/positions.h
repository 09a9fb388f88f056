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

// Returns the rows of the position table for `ids` [B, S] of a family whose positions start after
// padding: pad tokens have row `pad`, the others count from pad + 1 without them.
Value AddPositionsAfterPad(int32_t pad, const Value& ids, OnnxGraph* graph);

// Returns the row of the table of relative positions for query i and key j [S, S].
Value AddDistanceRows(const ModelConfig& config, const Value& range, OnnxGraph* graph);

// Returns query i minus key j [S, S].
Value AddDistances(const Value& range, OnnxGraph* graph);

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_POSITIONS_H_
