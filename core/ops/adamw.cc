#include "core/ops/adamw.h"

#include <cmath>
#include <vector>

#include "core/base/number.h"
#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"

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
  ParallelChunks(n, kChunk, [&](int64_t begin, int64_t end) {
    GetKernels().adamw({.value = value + begin,
        .grad = grad + begin,
        .m = m + begin,
        .v = v + begin,
        .n = end - begin,
        .rate = a.rate,
        .beta1 = a.beta1,
        .beta2 = a.beta2,
        .epsilon = a.epsilon,
        .decay = a.decay,
        .grad_scale = a.grad_scale,
        .correction1 = static_cast<float>(correction1),
        .correction2_root = static_cast<float>(std::sqrt(correction2))});
  });
}

}  // namespace cloze
