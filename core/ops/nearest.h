// Exact search: the rows of a table with the largest products with vectors.
#ifndef CLOZE_CORE_OPS_NEAREST_H_
#define CLOZE_CORE_OPS_NEAREST_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/tensor/mat.h"

namespace cloze {

// Vectors [rows, cols] without gaps, of type f32, bf16 or s8. Row r stands for scales[r] times its
// elements; scales null: 1.
struct VectorRows {
  const void* data = nullptr;
  int64_t rows = 0, cols = 0;
  DType type = DType::kF32;
  const float* scales = nullptr;
};

// A row and its product with a query.
struct Hit {
  int64_t row = 0;
  float score = 0;
};

// For each of `queries` [n, cols] f32 without gaps, returns the `top` rows of `table` with the
// largest products, best first, equal ones in the order of rows. Queries are rounded to the type of
// bf16 rows; rows of s8 are multiplied in f32. The same bits for any number of threads; up to
// kFewQueries queries, sums are in another order than for more. Requires finite values.
inline constexpr int64_t kFewQueries = 4;
std::vector<std::vector<Hit>> NearestRows(const VectorRows& table, ConstMat queries, int64_t top);

// Calls f(first, scores) for consecutive blocks of rows of `table`: scores [rows, n] f32 has the
// products of row first + i with all of `queries`, which are at most kQueryTile. The memory of
// `scores` is used again for the next block.
inline constexpr int64_t kQueryTile = 1024;
void ForScores(const VectorRows& table, ConstMat queries,
    absl::FunctionRef<void(int64_t first, ConstMat scores)> f);

// out [n, cols] = rows [begin, begin + n) of `table`, times their scales.
void WidenRows(const VectorRows& table, int64_t begin, int64_t n, float* out);
// lengths [rows] = Euclidean lengths of the rows of `table`; not finite if a value is not.
void RowLengths(const VectorRows& table, float* lengths);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_NEAREST_H_
