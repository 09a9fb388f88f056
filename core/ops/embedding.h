// Sum of three embedding lookups.
#ifndef CLOZE_CORE_OPS_EMBEDDING_H_
#define CLOZE_CORE_OPS_EMBEDDING_H_

#include <cstdint>

#include "core/tensor/arena.h"

namespace cloze {

// x[r] = words[ids[r]] + positions[pos[r]] + types[type[r]]. Tables f32 [.., cols]; positions
// and types may be empty. x [rows, cols] without gaps.
void EmbeddingForward(ConstMat words, const int32_t* ids, ConstMat positions, const int32_t* pos,
    ConstMat types, const int32_t* type, Mat x);
// dtable[ids[r]] += dx[r] for r < rows. Rows of one id are summed in fixed segments of 256, in the
// order of r, so that the bits do not depend on threads. Does nothing if dtable is empty.
void EmbeddingBackward(ConstMat dx, const int32_t* ids, int64_t rows, Arena& arena, Mat dtable);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_EMBEDDING_H_
