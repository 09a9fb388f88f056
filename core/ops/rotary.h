// Rotary position embeddings (Su et al. 2021), in the halves form of transformers.
#ifndef CLOZE_CORE_OPS_ROTARY_H_
#define CLOZE_CORE_OPS_ROTARY_H_

#include <cstdint>

#include "core/tensor/arena.h"

namespace cloze {

// Returns the cosines and then the sines of the angles position * base^(-2m / dim), m < dim / 2:
// [positions, dim] f32, in the arena. Requires an even dim.
Mat RotaryTable(int64_t positions, int64_t dim, float base, Arena& arena);

// Rotates row r of x [rows, heads dim] by the angles of position[r], in place: columns m and
// m + dim / 2 of each head become (u cos - v sin, v cos + u sin). `table` is a RotaryTable with a
// row for each position.
void RotaryForward(ConstMat table, const int32_t* position, Mat x);
// Rotates dx back, in place.
void RotaryBackward(ConstMat table, const int32_t* position, Mat dx);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ROTARY_H_
