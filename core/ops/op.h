// Helpers for ops: kernels, cost for the profile, loops over rows. Private to core/ops.
#ifndef CLOZE_CORE_OPS_OP_H_
#define CLOZE_CORE_OPS_OP_H_

#include <initializer_list>

#include "absl/functional/function_ref.h"
#include "core/base/threads.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/profile.h"
#include "core/tensor/arena.h"
#include "core/tensor/mat.h"

namespace cloze {

// Rows that one task of a loop over rows computes.
inline constexpr int64_t kRowChunk = 64;

// Returns the cost of reading or writing each of `mats` once; empty ones cost nothing.
OpCost MemoryCost(std::initializer_list<ConstMat> mats, double flop = 0);

// Runs a whole op with the cost MemoryCost(mats): calls f(row) for each row, except in a dry run.
void ForRows(const char* op, std::initializer_list<ConstMat> mats, int64_t rows,
    absl::FunctionRef<void(int64_t row)> f);
void ForRowChunks(const char* op, std::initializer_list<ConstMat> mats, int64_t rows, int64_t chunk,
    absl::FunctionRef<void(int64_t begin, int64_t end)> f);

// Calls f(begin, end, partial) for each chunk of rows, which accumulates in its own partial [cols];
// then sum[c] += all partials in order of rows, unless sum is null: the same bits for any number of
// threads. In a dry run only allocates.
void ReduceRows(int64_t rows, int64_t cols, Arena& arena, float* sum,
    absl::FunctionRef<void(int64_t begin, int64_t end, float* partial)> f);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_OP_H_
