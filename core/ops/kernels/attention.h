// Scaled dot-product attention of one sequence and head, forward and backward, block of queries by block of queries: never more than a
// block of the [tokens, tokens] scores in memory. Bishop & Bishop, Deep Learning, section 12.1.5; backward as in Dao et al. 2022. Included
// by table.cc.
#ifndef CLOZE_CORE_OPS_KERNELS_ATTENTION_H_
#define CLOZE_CORE_OPS_KERNELS_ATTENTION_H_

#include "core/ops/kernels/dropout.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/kernels.h"

namespace cloze {
namespace {

constexpr int64_t kQueryBlock = kAttentionQueries;

CLOZE_INLINE int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Sizes and pieces of the scratch memory. Padded to multiples of W; padding holds zeros wherever it is read.
struct AttentionScratchMap {
  int64_t tokens, dim, keys, width;  // keys, width: tokens and head_dim padded
  float *query, *key_t, *value_t, *key, *value, *dkey, *dvalue;
  float *p, *dp, *block_a, *block_b, *factor;

  AttentionScratchMap(const AttentionArgs& a)
      : tokens(a.tokens), dim(a.head_dim), keys(RoundUp(a.tokens, 16)), width(RoundUp(a.head_dim, 16)) {
    float* next = a.scratch;
    const auto take = [&](int64_t n) { return (next += n) - n; };
    key_t = take(width * keys), value_t = take(width * keys);
    query = take(keys * width), key = take(keys * width), value = take(keys * width), dkey = take(keys * width),
    dvalue = take(keys * width);
    p = take(kQueryBlock * keys), dp = take(kQueryBlock * keys);
    block_a = take(kQueryBlock * width), block_b = take(kQueryBlock * width);
    factor = take(RoundUp(keys, kDropoutGroup));
  }
};

// to[r, c] = scale * from[r, c] for r < rows, c < cols; zero for the rest of `width` columns.
template <typename T>
CLOZE_INLINE void PackRows(int64_t rows, int64_t cols, const T* from, int64_t stride, float scale, float* to, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, from += stride, to += width) {
    for (int64_t c = cols; c < width; ++c) to[c] = 0;
    Sweep(cols, [&](auto at) { at.Set(to, at(from) * scale); });
  }
}

// to[c, r] = from[r, c]; columns from `rows` to `keys` are zero. `from` packed [rows, width].
CLOZE_INLINE void Transpose(int64_t rows, int64_t cols, const float* from, int64_t width, float* to, int64_t keys) {
  for (int64_t r0 = 0; r0 < keys; r0 += 16) {
    for (int64_t c = 0; c < cols; ++c) {
      float* out = to + c * keys + r0;
      for (int64_t r = r0; r < r0 + 16; ++r) out[r - r0] = r < rows ? from[r * width + c] : 0.0f;
    }
  }
}

template <typename T>
CLOZE_INLINE void StoreRows(int64_t rows, int64_t cols, const float* from, int64_t width, T* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, from += width, to += stride) {
    Sweep(cols, [&](auto at) { at.Set(to, at(from)); });
  }
}

// The scaled scores of `rows` queries from `q` on, into p [rows, keys].
CLOZE_INLINE void Scores(const AttentionScratchMap& s, int64_t q, int64_t rows) {
  Gemm({rows, s.keys, s.dim, s.query + q * s.width, s.width, 1, s.key_t, s.keys, s.p, s.keys, false});
}

// Factors of dropout of query q, or null.
CLOZE_INLINE const float* ProbabilityFactors(const AttentionArgs& a, const AttentionScratchMap& s, int64_t q) {
  if (a.dropout.threshold == 0) return nullptr;
  DropoutFactors(a.dropout, q, a.tokens, s.factor);
  return s.factor;
}

// Softmax of a row in place, padding zeroed, dropout applied; returns the log-sum-exp.
CLOZE_INLINE float SoftmaxRow(const AttentionArgs& a, const AttentionScratchMap& s, int64_t q, float* row) {
  VF top = Splat(-3.4e38f);
  const VF lowest = top;
  Sweep(a.tokens, [&](auto at) { top = Max(top, at.Only(Splat(1.0f)) > VF{} ? at(row) : lowest); });
  const float max = MaxLane(top);
  VF total = {};
  Sweep(a.tokens, [&](auto at) {
    const VF e = at.Only(Exp(at(row) - max));
    at.Set(row, e);
    total += e;
  });
  for (int64_t c = a.tokens; c < s.keys; ++c) row[c] = 0;
  const float sum = Sum(total), inverse = 1.0f / sum;
  Sweep(a.tokens, [&](auto at) { at.Set(row, at(row) * inverse); });
  if (a.probs != nullptr) __builtin_memcpy(a.probs + q * a.tokens, row, a.tokens * sizeof(float));
  if (const float* factor = ProbabilityFactors(a, s, q)) {
    Sweep(a.tokens, [&](auto at) { at.Set(row, at(row) * at(factor)); });
  }
  return max + __builtin_logf(sum);
}

template <typename T>
void AttentionForward(const AttentionArgs& a) {
  const AttentionScratchMap s(a);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.q), a.stride, a.scale, s.query, s.width);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.k), a.stride, 1.0f, s.key, s.width);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.v), a.stride, 1.0f, s.value, s.width);
  Transpose(a.tokens, a.head_dim, s.key, s.width, s.key_t, s.keys);
  for (int64_t q = 0; q < a.tokens; q += kQueryBlock) {
    const int64_t rows = MinI(kQueryBlock, a.tokens - q);
    Scores(s, q, rows);
    for (int64_t r = 0; r < rows; ++r) a.lse[q + r] = SoftmaxRow(a, s, q + r, s.p + r * s.keys);
    Gemm({rows, s.width, a.tokens, s.p, s.keys, 1, s.value, s.width, s.block_a, s.width, false});
    StoreRows(rows, a.head_dim, s.block_a, s.width, static_cast<T*>(a.out) + q * a.out_stride, a.out_stride);
  }
}

// One query of the backward pass: `p` from scores to dropped-out probabilities, `dp` from d(dropped-out probability) to d(score).
// ds = p (dp - sum over keys of p dp), and the sum is dout . out.
CLOZE_INLINE void ScoreGradientRow(const AttentionArgs& a, const AttentionScratchMap& s, int64_t q, float dot, float* p, float* dp) {
  const float lse = a.lse[q];
  const float* factor = ProbabilityFactors(a, s, q);
  Sweep(a.tokens, [&](auto at) {
    const VF prob = Exp(at(p) - lse);
    VF d = at(dp);
    if (factor != nullptr) d *= at(factor);
    at.Set(dp, prob * (d - dot));
    at.Set(p, factor != nullptr ? prob * at(factor) : prob);
  });
  for (int64_t c = a.tokens; c < s.keys; ++c) p[c] = dp[c] = 0;
}

template <typename T>
CLOZE_INLINE float DotRow(int64_t n, const float* a, const T* b) {
  VF total = {};
  Sweep(n, [&](auto at) { total += at(a) * at(b); });
  return Sum(total);
}

template <typename T>
void AttentionBackward(const AttentionGradArgs& g) {
  const AttentionArgs& a = g.forward;
  const AttentionScratchMap s(a);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.q), a.stride, a.scale, s.query, s.width);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.k), a.stride, 1.0f, s.key, s.width);
  PackRows(a.tokens, a.head_dim, static_cast<const T*>(a.v), a.stride, 1.0f, s.value, s.width);
  Transpose(a.tokens, a.head_dim, s.key, s.width, s.key_t, s.keys);
  Transpose(a.tokens, a.head_dim, s.value, s.width, s.value_t, s.keys);
  for (int64_t q = 0; q < a.tokens; q += kQueryBlock) {
    const int64_t rows = MinI(kQueryBlock, a.tokens - q);
    const bool add = q > 0;
    const T* out = static_cast<const T*>(a.out) + q * a.out_stride;
    PackRows(rows, a.head_dim, static_cast<const T*>(g.dout) + q * a.out_stride, a.out_stride, 1.0f, s.block_a, s.width);
    Scores(s, q, rows);
    Gemm({rows, s.keys, s.dim, s.block_a, s.width, 1, s.value_t, s.keys, s.dp, s.keys, false});
    for (int64_t r = 0; r < rows; ++r) {
      const float dot = DotRow(a.head_dim, s.block_a + r * s.width, out + r * a.out_stride);
      ScoreGradientRow(a, s, q + r, dot, s.p + r * s.keys, s.dp + r * s.keys);
    }
    Gemm({a.tokens, s.width, rows, s.p, 1, s.keys, s.block_a, s.width, s.dvalue, s.width, add});
    Gemm({a.tokens, s.width, rows, s.dp, 1, s.keys, s.query + q * s.width, s.width, s.dkey, s.width, add});  // query carries the scale
    Gemm({rows, s.width, a.tokens, s.dp, s.keys, 1, s.key, s.width, s.block_b, s.width, false});
    PackRows(rows, a.head_dim, s.block_b, s.width, a.scale, s.block_b, s.width);
    StoreRows(rows, a.head_dim, s.block_b, s.width, static_cast<T*>(g.dq) + q * a.stride, a.stride);
  }
  StoreRows(a.tokens, a.head_dim, s.dkey, s.width, static_cast<T*>(g.dk), a.stride);
  StoreRows(a.tokens, a.head_dim, s.dvalue, s.width, static_cast<T*>(g.dv), a.stride);
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ATTENTION_H_
