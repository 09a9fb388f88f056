#include "core/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/op.h"
#include "core/tensor/mat.h"

namespace cloze {

void SampleRows(ConstMat logits, const float* uniforms, int32_t* samples) {
  const Op op("samples", [&] { return MemoryCost({logits}); });
  if (op.dry()) return;
  ParallelChunks(logits.rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<float> x(logits.cols);
    for (int64_t r = begin; r < end; ++r) {
      GetKernels().convert[logits.type](logits.cols, Rows(logits, r, 0).data, false, x.data());
      const float max = *std::max_element(x.begin(), x.end());
      double sum = 0, passed = 0;
      for (float& value : x) sum += value = std::exp(value - max);
      const double limit = uniforms[r] * sum;
      int32_t label = 0;
      for (int32_t c = 0; c < logits.cols; ++c) {
        passed += x[c];
        if (x[c] > 0) label = c;  // the last one if rounding keeps `passed` below
        if (passed > limit) break;
      }
      samples[r] = label;
    }
  });
}

}  // namespace cloze
