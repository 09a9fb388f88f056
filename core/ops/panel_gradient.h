// Gradients of weights on the CPU's matrix unit, where it has one. Private to core/ops.
#ifndef CLOZE_CORE_OPS_PANEL_GRADIENT_H_
#define CLOZE_CORE_OPS_PANEL_GRADIENT_H_

#include <cstdint>

#include "core/base/large_memory.h"
#include "core/tensor/mat.h"

namespace cloze {

// oneDNN copies both operands anew for every tile of such a product, which takes longer than
// multiplying. Here each is laid out in panels once. Not thread-safe; results have the same bits
// for any number of threads.
class PanelGradient {
 public:
  // Whether this CPU has it for activations of a type.
  static bool Runs(DType type);
  // dw [out, in] f32 += dy^T [out, n] x [n, in], dy and x bf16.
  void Add(ConstMat dy, ConstMat x, Mat dw);
  // Bytes of panels that Add takes, once for all sizes.
  static int64_t Bytes(int64_t tokens, int64_t out, int64_t in, DType type);

 private:
  LargeMemory panels_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_PANEL_GRADIENT_H_
