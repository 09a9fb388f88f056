#include "core/ops/norm.h"

#include <cstring>

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/reduce.h"

namespace cloze {
namespace {

const void* From(ConstMat m, int64_t row) { return m.empty() ? nullptr : Rows(m, row, 0).data; }
void* From(Mat m, int64_t row) { return m.empty() ? nullptr : Rows(m, row, 0).data; }

}  // namespace

void NormForward(ConstMat x, ConstMat residual, const NormParams& p, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y, NormStats stats) {
  CLOZE_CHECK(y.cols == y.stride && y.cols <= kMaxDropoutRow);
  const Op op("norm", [&] { return Traffic({x, residual, z, y}); });
  if (op.dry()) return;
  ParallelChunks(y.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().norm[y.type]({.rows = end - begin,
        .cols = y.cols,
        .x = From(x, begin),
        .residual = From(residual, begin),
        .z = From(z, begin),
        .y = From(y, begin),
        .mean = stats.mean + begin,
        .rstd = stats.rstd + begin,
        .gain = p.gain,
        .bias = p.bias,
        .epsilon = p.epsilon,
        .in = RowsFrom(in, begin),
        .out = RowsFrom(out, begin)});
  });
}

void NormBackward(ConstMat dy, ConstMat z, NormStats stats, const NormParams& p,
    const DropoutSite& in, const DropoutSite& out, ConstMat dz_in, const NormGrads& grads,
    Arena& arena, Mat dz, Mat dx) {
  CLOZE_CHECK(dy.cols == dy.stride && dz.cols == dz.stride && (in.p <= 0 || !dx.empty()));
  const Op op("norm backward", [&] { return Traffic({dy, z, dz_in, dz, dx}); });
  const int64_t cols = dy.cols;
  const Arena::Mark mark = arena.mark();
  float* sums = arena.NewArray<float>(3 * cols);  // gain, bias, dx
  if (!op.dry()) std::memset(sums, 0, 3 * cols * sizeof(float));
  ReduceRows(dy.rows, 3 * cols, arena, sums, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().norm_grad[dy.type]({.rows = end - begin,
        .cols = cols,
        .dy = From(dy, begin),
        .z = From(z, begin),
        .dz_in = From(dz_in, begin),
        .dz = From(dz, begin),
        .dx = From(dx, begin),
        .mean = stats.mean + begin,
        .rstd = stats.rstd + begin,
        .gain = p.gain,
        .dgain = partial,
        .dbias = partial + cols,
        .dxsum = grads.dx_sum == nullptr ? nullptr : partial + 2 * cols,
        .in = RowsFrom(in, begin),
        .out = RowsFrom(out, begin)});
  });
  float* const targets[] = {grads.gain, grads.bias, grads.dx_sum};
  for (int t = 0; t < 3; ++t) {
    if (op.dry() || targets[t] == nullptr) continue;
    for (int64_t c = 0; c < cols; ++c) targets[t][c] += sums[t * cols + c];
  }
  arena.Rewind(mark);
}

}  // namespace cloze
