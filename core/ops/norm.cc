#include "core/ops/norm.h"

#include "core/ops/op.h"

namespace cloze {
namespace {

void* From(ConstMat m, int64_t row) {
  return m.empty() ? nullptr : const_cast<void*>(Rows(m, row, 0).data);
}

// Returns the arguments for rows [begin, end).
NormArgs ArgsOf(int64_t begin, int64_t end, ConstMat x, ConstMat residual, ConstMat z, ConstMat y,
    NormStats stats, const NormParams& p, const DropoutSite& in, const DropoutSite& out) {
  return {end - begin, z.empty() ? y.cols : z.cols, From(x, begin), From(residual, begin),
      From(z, begin), From(y, begin), {stats.mean + begin, stats.rstd + begin}, p,
      RowsFrom(in, begin), RowsFrom(out, begin)};
}

}  // namespace

void NormForward(ConstMat x, ConstMat residual, const NormParams& p, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y, NormStats stats) {
  CLOZE_CHECK(y.cols == y.stride && y.cols <= kMaxDropoutRow);
  ForRowChunks("norm", {x, residual, z, y}, y.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().norm[y.type](ArgsOf(begin, end, x, residual, z, y, stats, p, in, out));
  });
}

void NormBackward(ConstMat dy, ConstMat z, NormStats stats, const NormParams& p,
    const DropoutSite& in, const DropoutSite& out, ConstMat dz_in, const NormGrads& grads,
    Arena& arena, Mat dz, Mat dx) {
  CLOZE_CHECK(dy.cols == dy.stride && dz.cols == dz.stride && (in.p <= 0 || !dx.empty()));
  const Op op("norm backward", [&] { return MemoryCost({dy, z, dz_in, dz, dx}); });
  const int64_t cols = dy.cols;
  const Arena::Mark mark = arena.mark();
  const Mat sums = arena.NewZero(3, cols, DType::kF32);  // gain, bias, dx
  ReduceRows(dy.rows, 3 * cols, arena, sums.f32(), [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().norm_grad[dy.type]({ArgsOf(begin, end, {}, {}, z, {}, stats, p, in, out),
        From(dy, begin), From(dz_in, begin), From(dz, begin), From(dx, begin), partial,
        partial + cols, grads.dx_sum == nullptr ? nullptr : partial + 2 * cols});
  });
  float* const targets[] = {grads.gain, grads.bias, grads.dx_sum};
  for (int t = 0; t < 3; ++t) {
    if (op.dry() || targets[t] == nullptr) continue;
    for (int64_t c = 0; c < cols; ++c) targets[t][c] += sums.f32(t)[c];
  }
  arena.Rewind(mark);
}

}  // namespace cloze
