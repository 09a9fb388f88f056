// The orthogonal factor of a matrix, by products only.
#ifndef CLOZE_CORE_OPS_ORTHOGONALIZE_H_
#define CLOZE_CORE_OPS_ORTHOGONALIZE_H_

#include <cstdint>

#include "core/ops/matmul.h"
#include "core/tensor/arena.h"

namespace cloze {

// Keeps packed operands and scratch memory. Not thread-safe; several may run in parallel.
class Orthogonalizer {
 public:
  Orthogonalizer() { matmul_.SharePacked(true); }

  // Replaces x [rows, cols] f32, which is U S V^T (its singular value decomposition), by about
  // U V^T: four steps of the Newton-Schulz iteration of Jordan et al. 2024 (Muon)
  //   x <- a x + b (x x^T) x + c (x x^T)^2 x,
  // whose products take operands of `type`, on x divided by its Frobenius norm. Singular values
  // above 1 % of that norm end between 0.68 and 1.21. A matrix of norm below 1e-30, such as zero,
  // stays as it is. Results have the same bits for any number of threads.
  void Run(DType type, Mat x);

  // Returns the bytes kept for the matrices so far, and an upper bound for those of one size.
  int64_t bytes() const { return arena_.peak() + matmul_.packed_bytes(); }
  static int64_t MostBytes(int64_t rows, int64_t cols, DType type);

 private:
  Matmul matmul_;
  Arena arena_;
  uint64_t version_ = 0;  // of the last operand that was packed
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ORTHOGONALIZE_H_
