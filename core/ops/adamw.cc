#include "core/ops/adamw.h"

#include <cmath>
#include <vector>

#include "core/ops/op.h"

namespace cloze {

static constexpr int64_t kChunk = 1 << 16;

double SumSquares(absl::Span<const float> x) {
  const int64_t n = x.size();
  const Op op("gradient norm", [&] { return OpCost{.bytes = 4.0 * n}; });
  if (op.dry()) return 0;
  std::vector<double> partial(CeilDiv(n, kChunk));
  ParallelChunks(n, kChunk, [&](int64_t begin, int64_t end) {
    partial[begin / kChunk] = GetKernels().sum_squares(end - begin, x.data() + begin);
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  return sum;
}

void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n) {
  const double correction1 = a.bias_correction ? 1 - std::pow(double{a.beta1}, a.step) : 1;
  const double correction2 = a.bias_correction ? 1 - std::pow(double{a.beta2}, a.step) : 1;
  const float first = correction1, second_root = std::sqrt(correction2);
  ParallelChunks(n, kChunk, [&](int64_t begin, int64_t end) {
    GetKernels().adamw(
        {a, first, second_root, end - begin, value + begin, grad + begin, m + begin, v + begin});
  });
}

}  // namespace cloze
