#include "core/ops/activation.h"

#include "core/ops/op.h"

namespace cloze {

void ActivationForward(ActivationKind kind, ConstMat u, Mat y) {
  CLOZE_CHECK(u.cols == u.stride && y.cols == y.stride && u.type == y.type);
  ForRowChunks("activation", {u, y}, u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().activation[u.type](kind, (end - begin) * u.cols, u.at(begin, 0), y.at(begin, 0));
  });
}

void ActivationBackward(
    ActivationKind kind, ConstMat u, ConstMat dy, float* dbias, Arena& arena, Mat y, Mat du) {
  CLOZE_CHECK(
      u.cols == u.stride && dy.cols == dy.stride && y.cols == y.stride && du.cols == du.stride);
  const Op op("activation backward", [&] { return MemoryCost({u, dy, y, du}); });
  ReduceRows(u.rows, u.cols, arena, dbias, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().activation_grad[u.type](kind, end - begin, u.cols, u.at(begin, 0), dy.at(begin, 0),
        y.at(begin, 0), du.at(begin, 0), partial);
  });
}

void GatedForward(ActivationKind kind, ConstMat u, Mat y) {
  CLOZE_CHECK(u.cols == u.stride && y.cols == y.stride && u.cols == 2 * y.cols);
  ForRowChunks("gated activation", {u, y}, u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().gated[u.type](kind, end - begin, y.cols, u.at(begin, 0), y.at(begin, 0));
  });
}

void GatedBackward(ActivationKind kind, ConstMat u, Mat dy, Mat du) {
  CLOZE_CHECK(u.cols == u.stride && dy.cols == dy.stride && du.cols == du.stride &&
              u.cols == 2 * dy.cols && du.cols == u.cols);
  ForRowChunks(
      "gated activation backward", {u, dy, dy, du}, u.rows, 16, [&](int64_t begin, int64_t end) {
        GetKernels().gated_grad[u.type](
            kind, end - begin, dy.cols, u.at(begin, 0), dy.at(begin, 0), du.at(begin, 0));
      });
}

}  // namespace cloze
