#include "core/ops/stored_matrix.h"

#include <algorithm>
#include <cmath>

namespace cloze {

Int8Matrix QuantizeMatrix(ConstMat m) {
  Int8Matrix to = {std::vector<int8_t>(m.rows * m.cols), std::vector<float>(m.rows)};
  for (int64_t r = 0; r < m.rows; ++r) {
    const float* from = m.f32(r);
    float largest = 0;
    for (int64_t c = 0; c < m.cols; ++c) largest = std::max(largest, std::fabs(from[c]));
    to.scale[r] = largest / 127;
    for (int64_t c = 0; largest > 1e-35f && c < m.cols; ++c)
      to.q[r * m.cols + c] = static_cast<int8_t>(std::lrint(from[c] / largest * 127));
  }
  return to;
}

}  // namespace cloze
