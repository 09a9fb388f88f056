#include "core/ops/op.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/mat.h"

namespace cloze {

OpCost Traffic(std::initializer_list<ConstMat> mats, double flop) {
  OpCost cost = {.flop = flop};
  for (const ConstMat& m : mats)
    cost.bytes += m.empty() ? 0 : double(m.rows) * m.cols * SizeOf(m.type);
  return cost;
}

void ForRows(const char* op, std::initializer_list<ConstMat> mats, int64_t rows,
    absl::FunctionRef<void(int64_t row)> f) {
  const Op scope(op, [&] { return Traffic(mats); });
  if (scope.dry()) return;
  ParallelChunks(rows, kRowChunk, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

void ReduceRows(int64_t rows, int64_t cols, Arena& arena, float* sum,
    absl::FunctionRef<void(int64_t, int64_t, float*)> f) {
  const Arena::Mark mark = arena.mark();
  const int64_t chunks = CeilDiv(rows, kRowChunk);
  float* partial = arena.NewArray<float>(chunks * cols);
  if (DryRun::active()) return arena.Rewind(mark);
  ParallelFor(chunks, [&](int64_t i) {
    std::memset(partial + i * cols, 0, cols * sizeof(float));
    f(i * kRowChunk, std::min(rows, (i + 1) * kRowChunk), partial + i * cols);
  });
  if (sum != nullptr)
    ParallelChunks(cols, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < chunks; ++i) {
        const float* p = partial + i * cols;
        for (int64_t c = begin; c < end; ++c) sum[c] += p[c];
      }
    });
  arena.Rewind(mark);
}

}  // namespace cloze
