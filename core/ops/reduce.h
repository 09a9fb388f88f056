// Sums over rows with the same bits for any number of threads: fixed chunks of rows, then the
// chunks in order. Private to core/ops.
#ifndef CLOZE_CORE_OPS_REDUCE_H_
#define CLOZE_CORE_OPS_REDUCE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/tensor/arena.h"

namespace cloze {

inline constexpr int64_t kRowChunk = 64;

// f(begin, end, partial) for each chunk of rows adds to its own partial [cols], zero at first; then
// sum[c] += all partials in order of rows. sum null: the sums are not needed.
void ReduceRows(int64_t rows, int64_t cols, Arena& arena, float* sum,
    absl::FunctionRef<void(int64_t begin, int64_t end, float* partial)> f);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_REDUCE_H_
