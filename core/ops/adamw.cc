#include "core/ops/adamw.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "core/ops/op.h"

namespace cloze {

std::vector<double> SquareSums(absl::Span<const float> x) {
  const int64_t n = x.size();
  const Op op("gradient norm", [&] { return OpCost{.bytes = 4.0 * n}; });
  std::vector<double> sums(CeilDiv(n, kSquaresChunk));
  if (op.dry()) return sums;
  ParallelChunks(n, kSquaresChunk, [&](int64_t begin, int64_t end) {
    sums[begin / kSquaresChunk] = GetKernels().sum_squares(end - begin, x.data() + begin);
  });
  return sums;
}

double SumSquares(absl::Span<const float> x) { return absl::c_accumulate(SquareSums(x), 0.0); }

// The corrections of step a.step, without memory.
static AdamArgs Corrected(const AdamW& a) {
  const double correction1 = a.bias_correction ? 1 - std::pow(double{a.beta1}, a.step) : 1;
  const double correction2 = a.bias_correction ? 1 - std::pow(double{a.beta2}, a.step) : 1;
  return {.options = a,
      .correction1 = static_cast<float>(correction1),
      .correction2_root = static_cast<float>(std::sqrt(correction2))};
}

double SumUpdateRatios(const AdamW& a, const float* grad, const float* v, int64_t n) {
  AdamArgs args = Corrected(a);
  args.n = n, args.grad = const_cast<float*>(grad), args.v = const_cast<float*>(v);
  return GetKernels().sum_update_ratios(args);
}

void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n) {
  const AdamArgs all = Corrected(a);
  ParallelChunks(n, kSquaresChunk, [&](int64_t begin, int64_t end) {
    AdamArgs args = all;
    args.n = end - begin;
    args.value = value + begin, args.grad = grad + begin, args.m = m + begin, args.v = v + begin;
    GetKernels().adamw(args);
  });
}

}  // namespace cloze
