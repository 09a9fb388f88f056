#include "core/ops/rows.h"

#include <cstring>

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"

namespace cloze {

void GatherRows(ConstMat x, absl::Span<const int32_t> rows, Mat y) {
  CLOZE_CHECK(x.cols == y.cols && x.type == y.type && y.rows >= static_cast<int64_t>(rows.size()));
  const Op op("gather", [&] { return Traffic({y, y}); });
  if (op.dry()) return;
  ParallelChunks(rows.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(Rows(y, i, 0).data, Rows(x, rows[i], 0).data, x.cols * SizeOf(x.type));
  });
  ZeroRowsFrom(y, rows.size());
}

void ScatterRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx) {
  CLOZE_CHECK(dx.cols == dy.cols && dx.type == dy.type);
  const Op op("scatter", [&] { return Traffic({dy, dx}); });
  if (op.dry()) return;
  ZeroRowsFrom(dx, 0);
  ParallelChunks(rows.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(Rows(dx, rows[i], 0).data, Rows(dy, i, 0).data, dy.cols * SizeOf(dy.type));
  });
}

void ZeroRowsFrom(Mat m, int64_t begin) {
  const Op op("zero", [&] { return Traffic({Rows(m, begin, m.rows - begin)}); });
  if (op.dry()) return;
  for (int64_t r = begin; r < m.rows; ++r)
    std::memset(Rows(m, r, 0).data, 0, m.cols * SizeOf(m.type));
}

RowCoordinates GatherCoordinates(
    const RowCoordinates& all, absl::Span<const int32_t> rows, int64_t padded, Arena& arena) {
  uint64_t* example = arena.NewArray<uint64_t>(padded);
  int32_t* position = arena.NewArray<int32_t>(padded);
  const Op op("gather coordinates", [&] { return OpCost{.bytes = 24.0 * padded}; });
  if (op.dry()) return {example, position};
  const int64_t count = rows.size();
  for (int64_t i = 0; i < padded; ++i) {
    example[i] = i < count ? all.example[rows[i]] : 0;
    position[i] = i < count ? all.position[rows[i]] : 0;
  }
  return {example, position};
}

}  // namespace cloze
