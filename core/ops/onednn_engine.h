// Matrix products by oneDNN, in tiles of one thread each. Private to core/ops.
#ifndef CLOZE_CORE_OPS_ONEDNN_ENGINE_H_
#define CLOZE_CORE_OPS_ONEDNN_ENGINE_H_

#include <memory>

#include "core/ops/packed_weight.h"

namespace cloze {

// Add functions queue tiles, Run computes them. Not thread-safe.
class OneDnnEngine {
 public:
  explicit OneDnnEngine(PackedWeights* packed);
  ~OneDnnEngine();

  // dst = src w^T (`transposed`) or src w, + bias [cols] f32 or null; with `accumulate` added to
  // dst.
  void AddProduct(
      ConstMat src, const Weight& w, bool transposed, const float* bias, Mat dst, bool accumulate);
  // dw [out, in] f32 += dy^T [out, n] x [n, in].
  void AddGradient(ConstMat dy, ConstMat x, Mat dw);
  void Run();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ONEDNN_ENGINE_H_
