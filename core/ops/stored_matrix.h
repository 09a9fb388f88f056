// Matrices as files hold them: transposed, or in int8.
#ifndef CLOZE_CORE_OPS_STORED_MATRIX_H_
#define CLOZE_CORE_OPS_STORED_MATRIX_H_

#include <cstdint>
#include <vector>

#include "core/tensor/mat.h"

namespace cloze {

// Returns m^T [cols, rows] of m [rows, cols].
template <typename T>
std::vector<T> Transposed(const T* m, int64_t rows, int64_t cols) {
  std::vector<T> t(rows * cols);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) t[c * rows + r] = m[r * cols + c];
  return t;
}

// A matrix [rows, cols] whose row r is scale[r] q[r].
struct Int8Matrix {
  std::vector<int8_t> q;
  std::vector<float> scale;
};
// Rounds to int8, ties to even; the largest value of a row becomes 127 or -127.
Int8Matrix QuantizeMatrix(ConstMat m);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_STORED_MATRIX_H_
