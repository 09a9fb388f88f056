// Linear combinations, conversions, column sums and selections of rows.
#ifndef CLOZE_CORE_OPS_ROWS_H_
#define CLOZE_CORE_OPS_ROWS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/dropout.h"
#include "core/tensor/arena.h"

namespace cloze {

// y = a x + b y; x may be y. With b = 0, y is not read.
void Axpby(float a, ConstMat x, float b, Mat y);
// dst = src, converted to the type of dst.
void Convert(ConstMat src, Mat dst);
// sum [cols] += column sums of x; does nothing if sum is null.
void AddColumnSums(ConstMat x, Arena& arena, float* sum);

// y[i] = x[rows[i]]; further rows of y become zero.
void GatherRows(ConstMat x, absl::Span<const int32_t> rows, Mat y);
// Copies row i of x to row rows[i] of cache, for all `rows`. Both have the same columns and type.
void KeepRows(ConstMat x, absl::Span<const int32_t> rows, Mat cache);
// Backward of GatherRows for distinct rows: dx[rows[i]] = dy[i]; all other rows of dx become zero.
void ScatterRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx);
// y[i] = mean, summed in f32, of rows [begin, end) of x for ranges[i], which must not be empty;
// further rows of y become zero.
struct RowRange {
  int32_t begin, end;
};
void AverageRows(ConstMat x, absl::Span<const RowRange> ranges, Arena& arena, Mat y);
// Backward of AverageRows for disjoint ranges: overwrites dx; rows in no range become zero.
void AverageRowsBackward(ConstMat dy, absl::Span<const RowRange> ranges, Mat dx);
// The largest element of each column of these rows, in place of their mean; at [ranges, cols] are
// the rows that they come from, the first of equal ones.
void MaxRows(ConstMat x, absl::Span<const RowRange> ranges, Mat y, int32_t* at);
// Backward of MaxRows for `count` disjoint ranges: overwrites dx; all other elements become zero.
void MaxRowsBackward(ConstMat dy, const int32_t* at, int64_t count, Mat dx);
// Sets rows [begin, m.rows) to zero.
void ZeroRowsFrom(Mat m, int64_t begin);
// Returns the coordinates of `rows`, then zeros up to `padded` rows, in the arena.
RowCoordinates GatherCoordinates(
    const RowCoordinates& all, absl::Span<const int32_t> rows, int64_t padded, Arena& arena);

// Draws samples [rows] from softmax(logits), logits [rows, labels] f32 or bf16: the first label at
// which the distribution function exceeds the row's number in uniforms [rows], each in [0, 1). Rows
// with NaN get any label.
void SampleRows(ConstMat logits, const float* uniforms, int32_t* samples);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ROWS_H_
