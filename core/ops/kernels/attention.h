// Scaled dot-product attention of one sequence and head, forward and backward, by blocks of
// queries: at most a block of the [tokens, tokens] scores is in memory. Bishop & Bishop, Deep
// Learning, section 12.1.5; backward as in Dao et al. 2022. Products use bf16 if T is bf16 and the
// CPU multiplies it, f32 otherwise; sums, softmax and statistics are f32.
#ifndef CLOZE_CORE_OPS_KERNELS_ATTENTION_H_
#define CLOZE_CORE_OPS_KERNELS_ATTENTION_H_

#include "core/ops/kernels/dropout.h"
#include "core/ops/kernels/gemm.h"

namespace cloze {

// Queries of a block.
constexpr int64_t kAttentionQueries = 64;

// A query sees the keys in [q - before, max(q + after + 1, prefix)), where q is its row.
constexpr int64_t kAllKeys = int64_t{1} << 31;
struct Visibility {
  int64_t before = kAllKeys, after = kAllKeys, prefix = 0;
};

struct RelativeArgs;  // in relative.h

// Attention of one sequence and head. Rows of q are `stride` elements apart, those of k and v
// key_stride, those of out out_stride. `tokens` is the number of keys.
struct AttentionArgs {
  int64_t queries, tokens, head_dim, stride, key_stride, out_stride;
  const void *q, *k, *v;  // T [queries, head_dim]; k and v [tokens, head_dim]
  void* out;              // T [queries, head_dim]
  float* lse;             // [queries] log-sum-exp of the scaled scores
  float* probs;           // [queries, tokens] or null: receives the probabilities before dropout
  float scale;
  Visibility visible;
  // From row 0 of the sequence on; `site` includes the head. Adjacent queries of a short sequence
  // share a row of random numbers: 4 queries with 32 elements each up to 32 tokens, 2 with 64 up to
  // 64 tokens.
  RowDropout dropout;
  float* scratch;  // AttentionScratch(...) floats, with `relative` RelativeScratch(...) more
  const RelativeArgs* relative = nullptr;  // null: scores do not depend on distances
};
struct AttentionGradArgs {
  AttentionArgs forward;
  const void* dout;    // T, rows out_stride apart
  void *dq, *dk, *dv;  // T; overwritten
};

// Returns an upper bound of the number of keys that a block of queries sees, if their range begins
// and ends at multiples of `to`.
inline int64_t AttentionSpan(int64_t tokens, const Visibility& visible, int64_t to) {
  const int64_t seen = visible.before + kAttentionQueries + visible.after + visible.prefix + to - 1;
  return ((seen < tokens ? seen : tokens) + to - 1) / to * to;
}

// Floats of scratch that one thread needs for `tokens` queries and keys, forward or backward.
inline int64_t AttentionScratch(int64_t tokens, int64_t head_dim, const Visibility& visible) {
  const int64_t keys = (tokens + 31) / 32 * 32, width = (head_dim + 15) / 16 * 16,
                span = AttentionSpan(tokens, visible, 32);
  return 7 * keys * width + kAttentionQueries * (3 * span + 3 * width + 1) + 2 * (span + 256);
}

#ifdef CLOZE_ISA
namespace {

// Sizes, padded to whole vectors; padding holds zeros wherever it is read. Take() allocates units
// (see gemm.h) from the scratch.
template <typename T>
struct AttentionSizes {
  static constexpr int kPairs = kPair<T>;
  static constexpr int kKeys = kTiles<kPairs> ? 32 : 16;  // their number is a multiple of this
  int64_t queries, tokens, dim;
  int64_t keys, width, rows;  // tokens, head_dim, the larger of tokens and queries; rounded up
  int64_t span, row;          // keys of a row of scores, units of a packed row of head_dim
  float* next;

  explicit AttentionSizes(const AttentionArgs& a)
      : queries(a.queries), tokens(a.tokens), dim(a.head_dim), keys(RoundUp(tokens, kKeys)),
        width(RoundUp(dim, 16)), rows(RoundUp(tokens > queries ? tokens : queries, kKeys)),
        span(AttentionSpan(tokens, a.visible, kKeys)), row(RoundUp(Pairs(dim), 16)),
        next(a.scratch) {}
  static int64_t Pairs(int64_t n) { return CeilDiv(n, kPairs); }
  // Returns `pairs`, the result of PackPairs for the keys, from `key` on.
  const float* FromKey(const float* pairs, int64_t key) const {
    return pairs + key / kPairs * width;
  }
  float* Take(int64_t units) { return (next += units) - units; }
};

// The keys that a block of queries sees, as columns of its scores.
struct KeyRange {
  int64_t first, keys;  // `to` of KeysOf divides both
  int64_t real;         // keys that are tokens
};

// Returns the keys that the queries q to q + count see, from and to a multiple of `to`.
CLOZE_INLINE KeyRange KeysOf(const AttentionArgs& a, int64_t to, int64_t q, int64_t count) {
  const int64_t first = q > a.visible.before ? (q - a.visible.before) / to * to : 0,
                end = MinI(a.tokens, MaxI(q + count + a.visible.after, a.visible.prefix));
  const int64_t keys = RoundUp(end - first, to);
  return {first, keys, MinI(keys, a.tokens - first)};
}

// Elements of packed rows.
template <typename T>
using Packed = std::conditional_t<kPair<T> == 2, T, float>;

// Copies whole cache lines, because the row is loaded right afterwards.
template <typename T>
CLOZE_INLINE void CopyRow(int64_t n, const T* from, T* to) {
  constexpr int64_t kLine = 64 / sizeof(T);
  int64_t c = 0;
  for (; c + kLine <= n; c += kLine) __builtin_memcpy(to + c, from + c, 64);
  if (c < n) __builtin_memcpy(to + c, from + c, (n - c) * sizeof(T));
}

// Packs rows of a matrix [rows, head_dim] T as the left operand of sums over head_dim.
template <typename T>
CLOZE_INLINE void PackRows(
    const AttentionSizes<T>& s, int64_t rows, const void* from, int64_t stride, float* to) {
  const int64_t padded = s.row * kPair<T>;
  for (int64_t r = 0; r < rows; ++r, to += s.row) {
    const T* source = static_cast<const T*>(from) + r * stride;
    auto* out = reinterpret_cast<Packed<T>*>(to);
    if (padded > s.dim) __builtin_memset(out + s.dim, 0, (padded - s.dim) * sizeof(*out));
    if constexpr (std::is_same_v<T, Packed<T>>) {
      CopyRow(s.dim, source, out);
    } else {
      ForLanes(s.dim, [&](auto at) { at.Set(out, at(source)); });
    }
  }
}

// Packs rows as the right operand of sums over rows: unit (k, c) holds element c of row k, or of
// rows 2k and 2k + 1. `rows` are packed rows. Returns [Pairs(count), width], padded with zeros to
// whole tiles: `to`, or `rows` if that has this layout already.
template <typename T>
CLOZE_INLINE const float* PackPairs(
    const AttentionSizes<T>& s, int64_t count, const float* rows, float* to) {
  if constexpr (kPair<T> == 1) return rows;
  for (int64_t r = 0; r < count; r += 2) {
    const bf16 *even = reinterpret_cast<const bf16*>(rows + r * s.row), *odd = even + 2 * s.row;
    float* out = to + r / 2 * s.width;
    for (int64_t c = 0; c < s.width; c += W) {
      const VU low = LoadBits(even + c), high = r + 1 < count ? LoadBits(odd + c) << 16 : VU{};
      Store(out + c, (VF)(low | high));
    }
  }
  if constexpr (kTiles<kPair<T>>) {
    const int64_t pairs = s.Pairs(count), whole = RoundUp(pairs, kTileUnits);
    __builtin_memset(to + pairs * s.width, 0, (whole - pairs) * s.width * sizeof(float));
  }
  return to;
}

template <typename T>
CLOZE_INLINE void StoreRows(const AttentionSizes<T>& s, int64_t rows, const float* from,
    const float* scale, void* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, from += s.width) {
    T* out = static_cast<T*>(to) + r * stride;
    const float factor = scale == nullptr ? 1.0f : scale[r];
    ForLanes(s.dim, [&](auto at) { at.Set(out, at(from) * factor); });
  }
}

// c [rows, k.keys] = left right^T for packed rows `left` and a transposed matrix; 0 after the
// tokens.
template <typename T>
CLOZE_INLINE void ProductOfRows(const AttentionSizes<T>& s, const KeyRange& k, int64_t rows,
    const float* left, const float* right_t, float* c) {
  Gemm<kPair<T>>({rows, k.keys, AttentionSizes<T>::Pairs(s.dim), left, s.row, 1, right_t + k.first,
      s.keys, c, s.span, false});
}

// In relative.h.
template <typename T>
void AddRelative(const AttentionArgs& a, const AttentionSizes<T>& s, int64_t q, int64_t count,
    const float* query, const float* key, float* scores);
template <typename T>
void RelativeBackward(const AttentionArgs& a, const AttentionSizes<T>& s, int64_t q, int64_t count,
    const float* query, const float* key, const float* ds, float* dquery, float* dkey);

// The columns of a row of scores that its query sees.
struct SeenColumns {
  int64_t begin, end;
};
CLOZE_INLINE SeenColumns SeenBy(const AttentionArgs& a, const KeyRange& k, int64_t q) {
  const int64_t begin = q - a.visible.before - k.first,
                end = MinI(a.tokens, MaxI(q + a.visible.after + 1, a.visible.prefix)) - k.first;
  return {begin > 0 ? begin : 0, end};
}

constexpr float kNoScore = -3e38f;  // of columns that are not seen; below all others
// Loads the scores from column c on.
CLOZE_INLINE VF Scores(const float* row, int64_t c, const SeenColumns& seen) {
  const VF score = Load(row + c);
  if (c >= seen.begin && c + W <= seen.end) return score;
  const VI hidden = (Lanes() < static_cast<int32_t>(seen.begin - c)) |
                    (Lanes() >= static_cast<int32_t>(seen.end - c));
  return hidden ? Splat(kNoScore) : score;
}

CLOZE_INLINE int64_t QueriesOfGroup(int64_t tokens) {
  return tokens <= 32 ? 4 : tokens <= 64 ? 2 : 1;
}

// Returns the dropout factors of query q from the first key of `k` on, or null. Adjacent queries of
// few keys share a group of random numbers, drawn for the first: call for all queries in order.
CLOZE_INLINE const float* ProbabilityFactors(
    const AttentionArgs& a, const KeyRange& k, int64_t q, float* buffer) {
  if (a.dropout.threshold == 0) return nullptr;
  const int64_t share = QueriesOfGroup(a.tokens), first = q % share;
  if (share > 1) {  // the only block sees all keys
    if (first == 0) DropoutFactors(a.dropout, q, 0, kDropoutGroup, buffer);
    return buffer + first * (kDropoutGroup / share);
  }
  const int64_t offset = k.first % kDropoutGroup;
  DropoutFactors(a.dropout, q, k.first / kDropoutGroup, offset + k.real, buffer);
  return buffer + offset;
}

// Replaces a row of scores by exp(scaled score - largest) with dropout, as a packed row. Returns
// the sum before dropout; lse[q] becomes the largest scaled score.
template <typename T>
CLOZE_INLINE float SoftmaxRow(
    const AttentionArgs& a, const KeyRange& k, int64_t q, float* buffer, float* row) {
  const SeenColumns seen = SeenBy(a, k, q);
  VF top = Splat(kNoScore);
  for (int64_t c = 0; c < k.keys; c += W) top = Max(top, Scores(row, c, seen));
  const float max = MaxLane(top) * a.scale;
  if (a.probs != nullptr) {
    float total = 0, *probs = a.probs + q * a.tokens;
    __builtin_memset(probs, 0, a.tokens * sizeof(float));
    probs += k.first + seen.begin;
    const float* scores = row + seen.begin;
    const int64_t count = seen.end - seen.begin;
    ForLanes(count, [&](auto at) { at.Set(probs, Exp(at(scores) * a.scale - max)); });
    for (int64_t c = 0; c < count; ++c) total += probs[c];
    for (int64_t c = 0; c < count; ++c) probs[c] /= total;
  }
  auto* packed = reinterpret_cast<Packed<T>*>(row);
  const float* factor = ProbabilityFactors(a, k, q, buffer);
  VF total = {};
  for (int64_t c = 0; c < k.keys; c += W) {
    VF e = Exp(Scores(row, c, seen) * a.scale - max);
    total += e;
    if (factor != nullptr) e *= Load(factor + c);
    Store(packed + c, e);
  }
  a.lse[q] = max;
  return Sum(total);
}

// Floats of the dropout factors of a row of scores, which start anywhere in a group.
CLOZE_INLINE int64_t FactorSize(int64_t span) {
  return RoundUp(span, kDropoutGroup) + kDropoutGroup;
}

template <typename T>
void AttentionForward(const AttentionArgs& a) {
  [[maybe_unused]] const MatrixUnit<kPair<T>> unit;
  AttentionSizes<T> s(a);
  float *rows = s.Take(s.rows * s.row), *key_t = s.Take(s.row * s.keys),
        *value_rows = s.Take(s.keys * s.row), *value_pairs = s.Take(s.keys * s.width),
        *p = s.Take(kAttentionQueries * s.span), *block = s.Take(kAttentionQueries * s.width),
        *factor = s.Take(FactorSize(s.span)), *sums = s.Take(kAttentionQueries),
        *key_rows = a.relative == nullptr ? rows : s.Take(s.keys * s.row);
  PackRows(s, s.tokens, a.k, a.key_stride, key_rows);
  Transpose(s.tokens, s.row, key_rows, s.row, key_t, s.keys);
  PackRows(s, s.tokens, a.v, a.key_stride, value_rows);
  const float* value = PackPairs(s, s.tokens, value_rows, value_pairs);
  PackRows(s, s.queries, a.q, a.stride, rows);
  for (int64_t q = 0; q < s.queries; q += kAttentionQueries) {
    const int64_t count = MinI(kAttentionQueries, s.queries - q);
    const KeyRange k = KeysOf(a, s.kKeys, q, count);
    const float* query = rows + q * s.row;
    ProductOfRows(s, k, count, query, key_t, p);
    if (a.relative != nullptr) AddRelative<T>(a, s, q, count, query, key_rows, p);
    for (int64_t r = 0; r < count; ++r)
      sums[r] = SoftmaxRow<T>(a, k, q + r, factor, p + r * s.span);
    ForLanes(count, [&](auto at) {
      at.Set(a.lse + q, at(a.lse + q) + Log(at(sums)));
      at.Set(sums, 1.0f / at(sums));
    });
    Gemm<kPair<T>>({count, s.width, s.Pairs(k.real), p, s.span, 1, s.FromKey(value, k.first),
        s.width, block, s.width, false});
    StoreRows(s, count, block, sums, static_cast<T*>(a.out) + q * a.out_stride, a.out_stride);
  }
}

// Results of the backward pass for one query.
struct ScoreGradient {
  VF p, ds;  // dropped-out probability, d(unscaled score)
};

// ds = scale p (dp - sum over keys of p dp), and the sum is dout . out.
CLOZE_INLINE ScoreGradient GradientAt(
    const AttentionArgs& a, VF score, VF dp, float lse, float dot, const float* factor) {
  const VF p = Exp(score * a.scale - lse);
  if (factor == nullptr) return {p, p * (dp - dot) * a.scale};
  const VF f = Load(factor);
  return {p * f, p * (dp * f - dot) * a.scale};
}

// For a block of queries, replaces scores `p` by dropped-out probabilities and their gradients `dp`
// by those of the scores, both as left operands of sums over queries. `ds` receives the latter as
// packed rows (f32: it is dp itself).
template <typename T>
CLOZE_INLINE void ScoreGradients(const AttentionArgs& a, const AttentionSizes<T>& s,
    const KeyRange& k, int64_t q, int64_t count, const float* dot, float* p, float* dp, float* ds,
    float* buffer) {
  const int64_t row = s.span, other = QueriesOfGroup(a.tokens) == 1 ? FactorSize(s.span) : 0;
  for (int64_t r = 0; r < count; r += kPair<T>) {
    const bool two = kPair<T> == 2 && r + 1 < count;
    const float* factor[] = {ProbabilityFactors(a, k, q + r, buffer),
        two ? ProbabilityFactors(a, k, q + r + 1, buffer + other) : nullptr};
    const SeenColumns seen[] = {SeenBy(a, k, q + r), SeenBy(a, k, q + r + 1)};
    const float lse[] = {a.lse[q + r], two ? a.lse[q + r + 1] : 0};
    float *p0 = p + r * row, *dp0 = dp + r * row;
    bf16 *ds0 = reinterpret_cast<bf16*>(ds + r * row / 2), *ds1 = ds0 + row;
    for (int64_t c = 0; c < k.keys; c += W) {
      const auto gradient = [&](int i) {
        return GradientAt(a, Scores(p0 + i * row, c, seen[i]), Load(dp0 + i * row + c), lse[i],
            dot[r + i], factor[i] == nullptr ? nullptr : factor[i] + c);
      };
      const ScoreGradient g = gradient(0), h = two ? gradient(1) : ScoreGradient{};
      Store(p0 + c, kPair<T> == 1 ? g.p : PairBf16(g.p, h.p));
      Store(dp0 + c, kPair<T> == 1 ? g.ds : PairBf16(g.ds, h.ds));
      if (kPair<T> == 2) Store(ds0 + c, g.ds);
      if (two) Store(ds1 + c, h.ds);
    }
  }
}

template <typename T>
void AttentionBackward(const AttentionGradArgs& g) {
  [[maybe_unused]] const MatrixUnit<kPair<T>> unit;
  const AttentionArgs& a = g.forward;
  constexpr int pair = kPair<T>;
  AttentionSizes<T> s(a);
  float *query = s.Take(s.rows * s.row), *key_rows = s.Take(s.keys * s.row),
        *key_pairs = s.Take(s.keys * s.width), *key_t = s.Take(s.row * s.keys),
        *value_t = s.Take(s.row * s.keys), *dkey = s.Take(s.keys * s.width),
        *dvalue = s.Take(s.keys * s.width);
  float *p = s.Take(kAttentionQueries * s.span), *dp = s.Take(kAttentionQueries * s.span),
        *ds = pair == 1 ? dp : s.Take(kAttentionQueries * s.span);
  float *dout = s.Take(kAttentionQueries * s.row),
        *block_pairs = s.Take(kAttentionQueries * s.width),
        *block = s.Take(kAttentionQueries * s.width), *factor = s.Take(2 * FactorSize(s.span)),
        *dot = s.Take(kAttentionQueries);
  PackRows(s, s.tokens, a.v, a.key_stride, query);
  Transpose(s.tokens, s.row, query, s.row, value_t, s.keys);
  PackRows(s, s.tokens, a.k, a.key_stride, key_rows);
  Transpose(s.tokens, s.row, key_rows, s.row, key_t, s.keys);
  const float* key = PackPairs(s, s.tokens, key_rows, key_pairs);
  PackRows(s, s.queries, a.q, a.stride, query);
  const bool all = a.visible.before >= s.tokens && a.visible.after >= s.tokens;
  // A block of queries that sees only some keys adds to their gradients.
  if (!all || s.queries == 0)
    __builtin_memset(dkey, 0, 2 * s.keys * s.width * sizeof(float));  // and dvalue
  for (int64_t q = 0; q < s.queries; q += kAttentionQueries) {
    const int64_t count = MinI(kAttentionQueries, s.queries - q), depth = s.Pairs(count);
    const KeyRange k = KeysOf(a, s.kKeys, q, count);
    const bool add = !all || q > 0;
    const T *out_rows = static_cast<const T*>(a.out) + q * a.out_stride,
            *dout_rows = static_cast<const T*>(g.dout) + q * a.out_stride;
    for (int64_t r = 0; r < count; ++r) {
      const T *x = dout_rows + r * a.out_stride, *y = out_rows + r * a.out_stride;
      dot[r] = SumOver(s.dim, [&](auto at) { return at(x) * at(y); });
    }
    PackRows(s, count, dout_rows, a.out_stride, dout);
    const float* block_query = query + q * s.row;
    ProductOfRows(s, k, count, block_query, key_t, p);
    if (a.relative != nullptr) AddRelative<T>(a, s, q, count, block_query, key_rows, p);
    ProductOfRows(s, k, count, dout, value_t, dp);
    ScoreGradients(a, s, k, q, count, dot, p, dp, ds, factor);
    const float* right = PackPairs(s, count, dout, block_pairs);
    Gemm<pair>({k.real, s.width, depth, p, 1, pair * s.span, right, s.width,
        dvalue + k.first * s.width, s.width, add});
    right = PackPairs(s, count, block_query, block_pairs);
    Gemm<pair>({k.real, s.width, depth, dp, 1, pair * s.span, right, s.width,
        dkey + k.first * s.width, s.width, add});
    Gemm<pair>({count, s.width, s.Pairs(k.real), ds, s.span / pair, 1, s.FromKey(key, k.first),
        s.width, block, s.width, false});
    if (a.relative != nullptr)
      RelativeBackward<T>(a, s, q, count, block_query, key_rows, ds, block, dkey);
    StoreRows(s, count, block, nullptr, static_cast<T*>(g.dq) + q * a.stride, a.stride);
  }
  StoreRows(s, s.tokens, dkey, nullptr, g.dk, a.key_stride);
  StoreRows(s, s.tokens, dvalue, nullptr, g.dv, a.key_stride);
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ATTENTION_H_
