// Word vectors: the loss of negative sampling, and sparse updates of tables.
#ifndef CLOZE_CORE_OPS_KERNELS_WORD_VECTORS_H_
#define CLOZE_CORE_OPS_KERNELS_WORD_VECTORS_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

// A table row that receives `factor` times row `from` of another matrix.
struct RowUpdate {
  int32_t row, from;
  float factor;
};

struct NegativeSamplingArgs {
  int64_t cols;         // a multiple of 16
  const float* hidden;  // [cols]
  const float* table;   // output vectors [.., cols]
  // n rows of `table`: `groups` times a target and its negatives.
  int64_t groups, group_size;
  const int32_t* rows;  // [n]
  float rate;           // learning rate
  float* factors;       // [n]; receives rate (label - sigmoid(hidden . row))
  float* gradient;      // [cols] += sum of factor times row
};

#ifdef CLOZE_ISA
namespace {

// Returns the sum over all rows of -log sigmoid(+-score), + for targets, - for negatives.
double NegativeSampling(const NegativeSamplingArgs& a) {
  const int64_t n = a.groups * a.group_size;
  for (int64_t i = 0; i < n; ++i) PrefetchRow(a.table + a.rows[i] * a.cols, a.cols);
  for (int64_t i = 0; i < n; ++i) {
    const float* row = a.table + a.rows[i] * a.cols;
    VF sum = {};
    for (int64_t c = 0; c < a.cols; c += W) sum += Load(a.hidden + c) * Load(row + c);
    a.factors[i] = i % a.group_size == 0 ? Sum(sum) : -Sum(sum);
  }
  ForLanes(n, [&](auto at) { at.Set(a.factors, Reciprocal(1.0f + Exp(-at(a.factors)))); });
  double loss = 0;
  for (int64_t i = 0; i < n;) {
    double likelihood = 1;
    for (const int64_t end = i + a.group_size, target = i; i < end; ++i) {
      const float p = a.factors[i];
      likelihood *= p > 1e-4f ? p : 1e-4f;
      a.factors[i] = i == target ? a.rate * (1 - p) : a.rate * (p - 1);
    }
    loss -= __builtin_log(likelihood);
  }
  for (int64_t c = 0; c < a.cols; c += 16) {
    VF sum[16 / W];
    for (int k = 0; k < 16 / W; ++k) sum[k] = Load(a.gradient + c + k * W);
    for (int64_t i = 0; i < n; ++i) {
      const float* row = a.table + a.rows[i] * a.cols + c;
      for (int k = 0; k < 16 / W; ++k) sum[k] += a.factors[i] * Load(row + k * W);
    }
    for (int k = 0; k < 16 / W; ++k) Store(a.gradient + c + k * W, sum[k]);
  }
  return loss;
}

// table[u.row] += u.factor x[u.from] for each update in order. Rows have `cols` elements, a
// multiple of 16.
void AddRows(int64_t n, const RowUpdate* updates, int64_t cols, const float* x, float* table) {
  constexpr int64_t kAhead = 4;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) PrefetchRow(table + updates[i + kAhead].row * cols, cols);
    const float* from = x + updates[i].from * cols;
    float* to = table + updates[i].row * cols;
    const VF factor = Splat(updates[i].factor);
    for (int64_t c = 0; c < cols; c += W) Store(to + c, Load(to + c) + factor * Load(from + c));
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_WORD_VECTORS_H_
