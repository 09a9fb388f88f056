// Sums over rows with the same bits for any number of threads: fixed chunks of rows, then the
// chunks in order. Private to core/ops.
#ifndef CLOZE_CORE_OPS_REDUCE_H_
#define CLOZE_CORE_OPS_REDUCE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/tensor/arena.h"

namespace cloze {

inline constexpr int64_t kRowChunk = 64;

// Calls f(begin, end, partial) for each chunk of rows, which accumulates in its own partial [cols];
// then sum[c] += all partials in order of rows, unless sum is null. In a dry run only allocates.
void ReduceRows(int64_t rows, int64_t cols, Arena& arena, float* sum,
    absl::FunctionRef<void(int64_t begin, int64_t end, float* partial)> f);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_REDUCE_H_
