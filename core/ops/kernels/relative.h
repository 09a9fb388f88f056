// Terms of attention scores that depend on the distance between query and key, forward and
// backward: a bias (Raffel et al. 2020), and products of contents with vectors of distances, as in
// disentangled attention (He et al. 2021). A matrix product yields the products of a group of rows
// with all distances in reach; scores are shifted rows of the result, so nothing is gathered.
#ifndef CLOZE_CORE_OPS_KERNELS_RELATIVE_H_
#define CLOZE_CORE_OPS_KERNELS_RELATIVE_H_

#include "core/ops/kernels/attention.h"

namespace cloze {

// Terms of the scores of one head that depend on the distance between query and key. Tables have 2
// span columns, where column `span` is distance 0; span is a multiple of 32 and at least the number
// of tokens. Null: no such term. The unscaled score of query i and key j is
//   q_i . k_j + bias[j - i] + q_i . keys[j - i] + k_j . queries[i - j].
struct RelativeArgs {
  int64_t span;
  const float* bias;            // [2 span]
  const float *keys, *queries;  // [units of head_dim, 2 span], packed
  // Backward only: packed pairs of rows [2 span, width], and gradients, accumulated.
  const float *key_pairs, *query_pairs;
  float* dbias = nullptr;                       // [2 span]
  float *dkeys = nullptr, *dqueries = nullptr;  // [2 span, width]
};

// Packs the vectors of one head for RelativeArgs.
struct RelativePackArgs {
  int64_t head_dim, stride, columns;  // columns: of the result, 2 span
  const void* vectors;                // T, rows `stride` apart
  const int32_t* index;               // [columns] row of each column
  float *transposed, *rows, *pairs;   // rows, pairs: [columns, width]; see RelativeArgs
};

// Floats of scratch that one thread needs besides AttentionScratch.
inline int64_t RelativeScratch(int64_t tokens, int64_t head_dim) {
  const int64_t columns = (tokens > 64 ? (tokens + 31) / 32 * 32 : 64) + 32;
  return 32 * (2 * columns + (head_dim + 15) / 16 * 16);
}

#ifdef CLOZE_ISA
namespace {

template <typename T>
void PackRelative(const RelativePackArgs& p) {
  AttentionArgs sizes = {};
  sizes.tokens = p.columns;
  sizes.head_dim = p.head_dim;
  const AttentionSizes<T> s(sizes);
  for (int64_t c = 0; c < p.columns; ++c) {
    PackRows(s, 1, static_cast<const T*>(p.vectors) + p.index[c] * p.stride, 0, p.rows + c * s.row);
  }
  Transpose(p.columns, s.row, p.rows, s.row, p.transposed, p.columns);
  if (p.pairs != nullptr) PackPairs(s, p.columns, p.rows, p.pairs);
}

// to[c] += from[c] for c < n, a multiple of W.
template <typename From>
CLOZE_INLINE void AddTo(int64_t n, const From* from, float* to) {
  for (int64_t c = 0; c < n; c += W) Store(to + c, Load(to + c) + Load(from + c));
}

// Adds to the scores [count, keys] of the queries from q on. query: their packed rows; key: those
// of all keys.
template <typename T>
void AddRelative(const AttentionArgs& a, const AttentionSizes<T>& s, int64_t q, int64_t count,
    const float* query, const float* key, float* scores) {
  const RelativeArgs& r = *a.relative;
  constexpr int64_t group = AttentionSizes<T>::kKeys;
  constexpr int pair = kPair<T>;
  const int64_t depth = s.Pairs(s.dim), columns = 2 * r.span;
  if (r.bias != nullptr) {
    for (int64_t i = 0; i < count; ++i) AddTo(s.keys, r.bias + r.span - q - i, scores + i * s.keys);
  }
  float* block = s.next;
  for (int64_t first = 0; r.keys != nullptr && first < count; first += group) {
    const int64_t rows = MinI(group, count - first), cols = s.keys + group;
    Gemm<pair>({rows, cols, depth, query + first * s.row, s.row, 1,
        r.keys + r.span - q - first - group, columns, block, cols, false});
    for (int64_t i = 0; i < rows; ++i)
      AddTo(s.keys, block + i * cols + group - i, scores + (first + i) * s.keys);
  }
  for (int64_t first = 0; r.queries != nullptr && first < s.tokens; first += group) {
    const int64_t rows = MinI(group, s.tokens - first), cols = RoundUp(count, group) + group;
    Gemm<pair>({rows, cols, depth, key + first * s.row, s.row, 1,
        r.queries + r.span + q - first - group, columns, block, cols, false});
    for (int64_t i = 0; i < count; i += W) {
      for (int64_t j = 0; j < group; j += W) {
        VF v[W];
        for (int l = 0; l < W; ++l) v[l] = Load(block + (j + l) * cols + i + group - j - l);
        TransposeSquare(v);
        for (int l = 0; l < W; ++l) {
          float* to = scores + (i + l) * s.keys + first + j;
          Store(to, Load(to) + v[l]);
        }
      }
    }
  }
}

// out [cols, width] += d^T x for d [rows, cols] and packed rows x, rows <= the group.
template <typename T>
CLOZE_INLINE void AddOuter(const AttentionSizes<T>& s, int64_t rows, int64_t cols,
    const Packed<T>* d, const float* x, float* pairs, float* x_pairs, float* out) {
  constexpr int pair = kPair<T>;
  const float* left = reinterpret_cast<const float*>(d);
  if constexpr (pair == 2) {
    for (int64_t r = 0; r < rows; r += 2) {
      const Packed<T>*even = d + r * cols, *odd = even + cols;
      for (int64_t c = 0; c < cols; c += W)
        Store(pairs + r / 2 * cols + c, (VF)(LoadBits(even + c) | LoadBits(odd + c) << 16));
    }
    left = pairs;
  }
  Gemm<pair>({cols, s.width, s.Pairs(rows), left, 1, cols, PackPairs(s, rows, x, x_pairs), s.width,
      out, s.width, true});
}

// The backward pass of AddRelative. ds [count, keys]: gradients of the unscaled scores, packed.
// Adds to dquery [count, width] and dkey [tokens, width].
template <typename T>
void RelativeBackward(const AttentionArgs& a, const AttentionSizes<T>& s, int64_t q, int64_t count,
    const float* query, const float* key, const float* ds, float* dquery, float* dkey) {
  const RelativeArgs& r = *a.relative;
  constexpr int64_t group = AttentionSizes<T>::kKeys;
  constexpr int pair = kPair<T>;
  const auto* grad = reinterpret_cast<const Packed<T>*>(ds);
  if (r.dbias != nullptr) {
    for (int64_t i = 0; i < count; ++i) AddTo(s.keys, grad + i * s.keys, r.dbias + r.span - q - i);
  }
  const int64_t most = RoundUp(s.keys > 64 ? s.keys : 64, group) + group;
  float *pairs = s.next + group * most, *x_pairs = pairs + group * most;
  auto* d = reinterpret_cast<Packed<T>*>(s.next);
  for (int64_t first = 0; r.keys != nullptr && first < count; first += group) {
    const int64_t rows = MinI(group, count - first), cols = s.keys + group,
                  start = r.span - q - first - group;
    __builtin_memset(d, 0, group * cols * sizeof(*d));
    for (int64_t i = 0; i < rows; ++i)
      CopyRow(s.keys, grad + (first + i) * s.keys, d + i * cols + group - i);
    Gemm<pair>({rows, s.width, cols / pair, s.next, cols / pair, 1,
        r.key_pairs + start / pair * s.width, s.width, dquery + first * s.width, s.width, true});
    AddOuter(s, rows, cols, d, query + first * s.row, pairs, x_pairs, r.dkeys + start * s.width);
  }
  for (int64_t first = 0; r.queries != nullptr && first < s.tokens; first += group) {
    const int64_t rows = MinI(group, s.tokens - first), cols = RoundUp(count, group) + group,
                  start = r.span + q - first - group;
    __builtin_memset(d, 0, group * cols * sizeof(*d));
    for (int64_t i = 0; i < count; i += W) {
      for (int64_t j = 0; j < group; j += W) {
        VF v[W];
        for (int l = 0; l < W; ++l)
          v[l] = i + l < count ? Load(grad + (i + l) * s.keys + first + j) : VF{};
        TransposeSquare(v);
        for (int l = 0; l < W; ++l) Store(d + (j + l) * cols + i + group - j - l, v[l]);
      }
    }
    Gemm<pair>({rows, s.width, cols / pair, s.next, cols / pair, 1,
        r.query_pairs + start / pair * s.width, s.width, dkey + first * s.width, s.width, true});
    AddOuter(s, rows, cols, d, key + first * s.row, pairs, x_pairs, r.dqueries + start * s.width);
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_RELATIVE_H_
