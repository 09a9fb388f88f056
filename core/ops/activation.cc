#include "core/ops/activation.h"

#include "core/ops/op.h"

namespace cloze {

void ActivationForward(ActivationKind kind, ConstMat u, Mat y) {
  CLOZE_CHECK(u.cols == u.stride && y.cols == y.stride && u.type == y.type);
  const Op op("activation", [&] { return MemoryCost({u, y}); });
  if (op.dry()) return;
  ParallelChunks(u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().activation[u.type](
        kind, (end - begin) * u.cols, Rows(u, begin, 0).data, Rows(y, begin, 0).data);
  });
}

void ActivationBackward(
    ActivationKind kind, ConstMat u, ConstMat dy, float* dbias, Arena& arena, Mat y, Mat du) {
  CLOZE_CHECK(
      u.cols == u.stride && dy.cols == dy.stride && y.cols == y.stride && du.cols == du.stride);
  const Op op("activation backward", [&] { return MemoryCost({u, dy, y, du}); });
  ReduceRows(u.rows, u.cols, arena, dbias, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().activation_grad[u.type](kind, end - begin, u.cols, Rows(u, begin, 0).data,
        Rows(dy, begin, 0).data, Rows(y, begin, 0).data, Rows(du, begin, 0).data, partial);
  });
}

void GatedForward(ActivationKind kind, ConstMat u, Mat y) {
  CLOZE_CHECK(u.cols == u.stride && y.cols == y.stride && u.cols == 2 * y.cols);
  const Op op("gated activation", [&] { return MemoryCost({u, y}); });
  if (op.dry()) return;
  ParallelChunks(u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().gated[u.type](
        kind, end - begin, y.cols, Rows(u, begin, 0).data, Rows(y, begin, 0).data);
  });
}

void GatedBackward(ActivationKind kind, ConstMat u, Mat dy, Mat du) {
  CLOZE_CHECK(u.cols == u.stride && dy.cols == dy.stride && du.cols == du.stride &&
              u.cols == 2 * dy.cols && du.cols == u.cols);
  const Op op("gated activation backward", [&] { return MemoryCost({u, dy, dy, du}); });
  if (op.dry()) return;
  ParallelChunks(u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().gated_grad[u.type](kind, end - begin, dy.cols, Rows(u, begin, 0).data,
        Rows(dy, begin, 0).data, Rows(du, begin, 0).data);
  });
}

}  // namespace cloze
