// Matrix products on the CPU's matrix unit (AMX), by our own kernels. Private to core/ops.
#ifndef CLOZE_CORE_OPS_MATRIX_UNIT_H_
#define CLOZE_CORE_OPS_MATRIX_UNIT_H_

#include <utility>
#include <vector>

#include "core/ops/kernels/product.h"
#include "core/ops/packed_weight.h"

namespace cloze {

// For the gradients of weights, oneDNN copies both operands again for every tile, which takes
// longer than multiplying; here each operand is packed once. Not thread-safe; results have the same
// bits for any number of threads.
class MatrixUnit {
 public:
  explicit MatrixUnit(PackedWeights* packed) : packed_(packed) {}

  // True if this CPU multiplies src [n, depth] with packed weights.
  static bool Multiplies(ConstMat src);
  // Queues a product, as OneDnnEngine::AddProduct; Run computes what is queued.
  void AddProduct(
      ConstMat src, const Weight& w, bool transposed, const float* bias, Mat dst, bool accumulate);
  void Run();

  // True if this CPU computes gradients of weights from activations of `type`.
  static bool HasGradient(DType type);
  // dw [out, in] f32 += dy^T [out, n] x [n, in], dy and x bf16; at once.
  void AddGradient(ConstMat dy, ConstMat x, Mat dw);
  // Returns the bytes that AddGradient allocates; they are kept for the largest product.
  static int64_t GradientBytes(int64_t tokens, int64_t out, int64_t in, DType type);

 private:
  PackedWeights* packed_;
  std::vector<std::pair<ProductArgs, DType>> queue_;  // with the type of the result
  std::vector<LargeMemory> scratch_;                  // of each thread
  LargeMemory panels_;                                // of AddGradient
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_MATRIX_UNIT_H_
