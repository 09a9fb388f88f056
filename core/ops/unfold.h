// The input of a convolution over the rows of sequences, as rows for a matrix product.
#ifndef CLOZE_CORE_OPS_UNFOLD_H_
#define CLOZE_CORE_OPS_UNFOLD_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/mat.h"

namespace cloze {

// y[r, c size + k] = x[r + k - size / 2, c] for k < size, 0 if that row belongs to another sequence
// or to none. Sequence s is rows [cu_seqlens[s], cu_seqlens[s + 1]). x [rows, cols], y [rows, size
// cols], size odd; rows after the last sequence become zero.
void UnfoldRows(ConstMat x, absl::Span<const int32_t> cu_seqlens, int size, Mat y);
// Overwrites dx [rows, cols].
void UnfoldRowsBackward(ConstMat dy, absl::Span<const int32_t> cu_seqlens, int size, Mat dx);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_UNFOLD_H_
