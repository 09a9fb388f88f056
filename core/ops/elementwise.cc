#include "core/ops/elementwise.h"

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/reduce.h"

namespace cloze {

void Axpby(float a, ConstMat x, float b, Mat y) {
  CLOZE_CHECK(x.rows == y.rows && x.cols == y.cols && x.type == y.type);
  const Op op("axpby", [&] { return Traffic({x, y}); });
  if (op.dry()) return;
  ParallelChunks(x.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      GetKernels().axpby[x.type](x.cols, a, Rows(x, r, 0).data, b, Rows(y, r, 0).data);
  });
}

void Convert(ConstMat src, Mat dst) {
  CLOZE_CHECK(src.rows == dst.rows && src.cols == dst.cols);
  const Op op("convert", [&] { return Traffic({src, dst}); });
  if (op.dry()) return;
  const auto& to = dst.type == DType::kF32 ? GetKernels().to_f32 : GetKernels().to_bf16;
  ParallelChunks(src.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      to[src.type](src.cols, Rows(src, r, 0).data, Rows(dst, r, 0).data);
  });
}

void AddColumnSums(ConstMat x, Arena& arena, float* sum) {
  if (sum == nullptr) return;
  const Op op("column sums", [&] { return Traffic({x}); });
  ReduceRows(x.rows, x.cols, arena, sum, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().column_sum[x.type](end - begin, x.cols, Rows(x, begin, 0).data, x.stride, partial);
  });
}

}  // namespace cloze
