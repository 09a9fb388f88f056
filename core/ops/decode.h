// Attention of a generating decoder to the cached keys and values of earlier tokens.
#ifndef CLOZE_CORE_OPS_DECODE_H_
#define CLOZE_CORE_OPS_DECODE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/arena.h"

namespace cloze {

// Copies row i of x to row rows[i] of cache, for all `rows`. Both have the same columns and type.
void KeepRows(ConstMat x, absl::Span<const int32_t> rows, Mat cache);

// out [n, heads dim] = softmax(q k^T / sqrt(dim)) v for q [n, heads dim] and a cache [., 2 heads
// dim] of keys and values. Query i sees the rows seen[ends[i - 1]] ... seen[ends[i] - 1] of the
// cache (ends[-1] is 0). Rows of out without a query become zero.
void DecodeAttention(ConstMat q, ConstMat cache, absl::Span<const int32_t> seen,
    absl::Span<const int32_t> ends, int heads, Arena& arena, Mat out);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_DECODE_H_
