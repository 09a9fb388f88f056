#include "core/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "core/ops/op.h"

namespace cloze {
namespace {

// Sums row(r), the loss of a row, in the order of the rows.
LossSum SumRows(
    ConstMat logits, int64_t chunk, Arena& arena, absl::FunctionRef<LossSum(int64_t r)> row) {
  const Op op("softmax and loss", [&] { return MemoryCost({logits, logits}); });
  const Arena::Mark mark = arena.mark();
  LossSum* losses = arena.NewArray<LossSum>(logits.rows);
  LossSum sum;
  if (op.dry()) return arena.Rewind(mark), sum;
  ParallelChunks(logits.rows, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) losses[r] = row(r);
  });
  for (int64_t r = 0; r < logits.rows; ++r) sum += losses[r];
  arena.Rewind(mark);
  return sum;
}

// Returns the loss of a row of n logits.
LossSum WeightedRow(
    float* x, int64_t n, int32_t target, const LabelWeights& labels, float gradient_scale) {
  const auto weight = [&](int64_t c) {
    return labels.weights.empty() ? 1.0 : double{labels.weights[c]};
  };
  const auto best = std::max_element(x, x + n);
  const double max = *best, even = labels.smoothing / double(n),
               target_weight = (1.0 - labels.smoothing) * weight(target);
  double sum = 0, all = 0;
  for (int64_t c = 0; c < n; ++c) sum += std::exp(x[c] - max), all += weight(c);
  const double log_sum = max + std::log(sum);
  const bool correct = best - x == target;
  double loss = target_weight * (log_sum - x[target]);
  if (even > 0) {
    for (int64_t c = 0; c < n; ++c) loss += even * weight(c) * (log_sum - x[c]);
  }
  if (gradient_scale == 0) return {loss, correct};
  for (int64_t c = 0; c < n; ++c) {
    const double gradient = std::exp(x[c] - log_sum) * (target_weight + even * all) -
                            even * weight(c) - (c == target ? target_weight : 0);
    x[c] = static_cast<float>(gradient * gradient_scale);
  }
  return {loss, correct};
}

}  // namespace

LossSum SoftmaxCrossEntropy(
    Mat logits, const int32_t* targets, float gradient_scale, Arena& arena) {
  return SumRows(logits, 4, arena, [&](int64_t r) {
    const LossRow row = GetKernels().softmax_loss[logits.type](
        logits.cols, logits.at(r, 0), targets[r], gradient_scale);
    return LossSum{row.loss, row.best == targets[r]};
  });
}

void RowLosses(Mat logits, const int32_t* targets, absl::Span<double> losses) {
  ParallelChunks(logits.rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      losses[r] =
          GetKernels()
              .softmax_loss[logits.type](logits.cols, logits.at(r, 0), targets[r], /*gradient=*/0)
              .loss;
    }
  });
}

LossSum WeightedCrossEntropy(Mat logits, const int32_t* targets, const LabelWeights& labels,
    float gradient_scale, Arena& arena) {
  return SumRows(logits, 64, arena, [&](int64_t r) {
    return WeightedRow(logits.f32(r), logits.cols, targets[r], labels, gradient_scale);
  });
}

LossSum BinaryCrossEntropy(Mat logits, const float* targets, float gradient_scale, Arena& arena) {
  return SumRows(logits, 64, arena, [&](int64_t r) {
    LossSum row = {0, true};
    float* x = logits.f32(r);
    const float* y = targets + r * logits.cols;
    for (int64_t c = 0; c < logits.cols; ++c) {
      const double z = x[c], e = std::exp(-std::fabs(z));  // in [0, 1]: cannot overflow
      row.loss += std::max(z, 0.0) - z * y[c] + std::log1p(e);
      row.correct &= (z > 0) == (y[c] > 0.5f);
      if (gradient_scale != 0)
        x[c] = static_cast<float>(((z < 0 ? e : 1) / (1 + e) - y[c]) * gradient_scale);
    }
    return row;
  });
}

LossSum SquaredError(Mat logits, const float* targets, float gradient_scale, Arena& arena) {
  return SumRows(logits, 64, arena, [&](int64_t r) {
    LossSum row;
    for (int64_t c = 0; c < logits.cols; ++c) {
      float& x = logits.f32(r)[c];
      const double error = double{x} - targets[r * logits.cols + c];
      row.loss += error * error;
      if (gradient_scale != 0) x = static_cast<float>(2 * error * gradient_scale);
    }
    return row;
  });
}

}  // namespace cloze
