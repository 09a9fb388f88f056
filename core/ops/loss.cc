// Softmax cross entropy with its gradient in place.
#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/ops.h"

namespace cloze {

LossSum SoftmaxCrossEntropy(Mat logits, const int32_t* targets, float gradient_scale, Arena& arena) {
  const OpTimer timer("softmax and loss", [&] { return Traffic({logits, logits}); });
  const Arena::Mark mark = arena.mark();
  LossRow* rows = arena.NewArray<LossRow>(logits.rows);
  ParallelChunks(logits.rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      rows[r] = GetKernels().softmax_loss[int(logits.type)](logits.cols, Rows(logits, r, 0).data, targets[r], gradient_scale);
    }
  });
  LossSum sum;
  for (int64_t r = 0; r < logits.rows; ++r) {
    sum.loss += rows[r].loss;
    sum.correct += rows[r].best == targets[r];
  }
  arena.Rewind(mark);
  return sum;
}

}  // namespace cloze
