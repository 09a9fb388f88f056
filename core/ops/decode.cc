#include "core/ops/decode.h"

#include <cmath>
#include <cstring>

#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {

void KeepRows(ConstMat x, absl::Span<const int32_t> rows, Mat cache) {
  CLOZE_CHECK(x.cols == cache.cols && x.type == cache.type && x.rows >= std::ssize(rows));
  ForRows("keep keys and values", {Rows(x, 0, rows.size()), Rows(x, 0, rows.size())}, rows.size(),
      [&](int64_t i) {
        std::memcpy(Rows(cache, rows[i], 1).data, Rows(x, i, 1).data, x.cols * SizeOf(x.type));
      });
}

void DecodeAttention(ConstMat q, ConstMat cache, absl::Span<const int32_t> seen,
    absl::Span<const int32_t> ends, int heads, Arena& arena, Mat out) {
  CLOZE_CHECK(cache.cols == 2 * q.cols && q.type == cache.type && q.type == out.type);
  const Arena::Mark mark = arena.mark();
  const int64_t dim = q.cols / heads, queries = ends.size(), size = std::ssize(seen) + dim;
  float* const scratch = arena.NewArray<float>(size * Threads());
  const Op op("attention to cache", [&] {
    const ConstMat read = Rows(cache, 0, seen.size());
    return MemoryCost({q, read, out}, 4.0 * static_cast<double>(seen.size() * q.cols));
  });
  if (op.dry()) return arena.Rewind(mark);
  ParallelFor(queries * heads, [&](int64_t task) {
    const int64_t i = task / heads, column = task % heads * dim, begin = i > 0 ? ends[i - 1] : 0;
    GetKernels().decode_attention[q.type]({.keys = ends[i] - begin,
        .head_dim = dim,
        .stride = cache.stride,
        .rows = seen.data() + begin,
        .q = Columns(Rows(q, i, 1), column, dim).data,
        .k = Columns(cache, column, dim).data,
        .v = Columns(cache, q.cols + column, dim).data,
        .out = Columns(Rows(out, i, 1), column, dim).data,
        .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
        .scratch = scratch + ThreadIndex() * size});
  });
  ZeroRowsFrom(out, queries);
  arena.Rewind(mark);
}

}  // namespace cloze
