// Attention of one sequence and head with products of int8, for inference. Each column of k and of
// v is shifted by the middle of its range over the keys and has its own scale: softmax ignores a
// shift of k, and that of v is added to the result. The scales of k are multiplied into q (Xiao et
// al. 2023, SmoothQuant), so all scores of a query have the same scale.
#ifndef CLOZE_CORE_OPS_KERNELS_INT8_ATTENTION_H_
#define CLOZE_CORE_OPS_KERNELS_INT8_ATTENTION_H_

#include "core/ops/kernels/attention.h"
#include "core/ops/kernels/int8_product.h"

namespace cloze {

// With fewer keys, quantizing takes as long as products of int8 save.
constexpr int64_t kInt8AttentionTokens = 64;

#ifdef CLOZE_ISA
namespace {

#if defined(__AMX_INT8__) || !(defined(__AVX512VNNI__) || defined(__AVXVNNI__))

// Without VNNI, products of int8 are not faster than those of bf16. With AMX, products of bf16 are
// already a small part of the time.
void Int8Attention(const AttentionArgs& a) { AttentionForward<bf16>(a); }

#else

constexpr int32_t kQueryZero = 128;      // zero point of the bytes of q
constexpr float kMaxQ = 127;             // largest quantized value of k, v and q - kQueryZero
constexpr int32_t kUnseen = -(1 << 30);  // score of a key that the query does not see

// Sizes padded to whole panels, and to kInt8Depth. Take() allocates from the scratch.
struct Int8AttentionSizes {
  int64_t keys, span, depth, cols;  // span: keys of a row of scores; depth and cols: of head_dim
  uint8_t* next;

  explicit Int8AttentionSizes(const AttentionArgs& a)
      : keys(RoundUp(a.tokens, kInt8Cols)), span(AttentionSpan(a.tokens, a.visible, kInt8Cols)),
        depth(RoundUp(a.head_dim, kInt8Depth)), cols(RoundUp(a.head_dim, kInt8Cols)),
        next(reinterpret_cast<uint8_t*>(a.scratch)) {}
  template <typename E>
  E* Take(int64_t count) {
    E* const taken = reinterpret_cast<E*>(next);
    next += RoundUp(count * sizeof(E), 16);
    return taken;
  }
};

// The middle of the range of each column, half of the width of the range, and kMaxQ / half.
struct ColumnRanges {
  float *middle, *half, *inverse;
};
CLOZE_INLINE void FindRanges(
    int64_t rows, int64_t cols, const bf16* x, int64_t stride, const ColumnRanges& to) {
  ForLanes(cols, [&](auto at) {
    VF most = at(x), least = most;
    for (int64_t r = 1; r < rows; ++r) {
      const VF v = at(x + r * stride);
      most = Max(most, v);
      least = Min(least, v);
    }
    const VF half = 0.5f * (most - least);
    at.Set(to.middle, 0.5f * (most + least));
    at.Set(to.half, half);
    at.Set(to.inverse, half > Splat(1e-30f) ? kMaxQ / half : VF{});
  });
}

// Packs keys into panels as Int8PackArgs describes: columns are keys, depth is that of head_dim.
// rows: [32, depth], overwritten.
CLOZE_INLINE void PackKeys(const AttentionArgs& a, const Int8AttentionSizes& s,
    const ColumnRanges& range, uint8_t* rows, int8_t* panel) {
  const bf16* k = static_cast<const bf16*>(a.k);
  const int64_t units = s.depth / kInt8Unit;
  __builtin_memset(rows, 0, kInt8Cols * s.depth);
  for (int64_t first = 0; first < a.tokens; first += kInt8Cols, k += kInt8Cols * a.key_stride) {
    const int64_t count = MinI(kInt8Cols, a.tokens - first);
    ForLanes(a.head_dim, [&](auto at) {
      const VF middle = at(range.middle), inverse = at(range.inverse);
      for (int64_t r = 0; r < count; ++r) {
        const VI q = NearestInt((at(k + r * a.key_stride) - middle) * inverse);
        StoreBytesAt(at, rows + r * s.depth, q);
      }
    });
    Transpose(count, units, reinterpret_cast<const float*>(rows), units,
        reinterpret_cast<float*>(panel + first * s.depth), kInt8Cols);
  }
}

// Packs values into panels: columns are those of head_dim, depth is keys.
CLOZE_INLINE void PackValues(
    const AttentionArgs& a, const Int8AttentionSizes& s, const ColumnRanges& range, int8_t* panel) {
  const bf16* v = static_cast<const bf16*>(a.v);
  for (int64_t col = 0; col < a.head_dim; col += kInt8Cols, panel += kInt8Cols * s.keys) {
    const int64_t cols = MinI(kInt8Cols, a.head_dim - col);
    if (cols < kInt8Cols) __builtin_memset(panel, 0, kInt8Cols * s.keys);
    ForLanes(cols, [&](auto at) {
      const VF middle = at(range.middle + col), inverse = at(range.inverse + col);
      int8_t* to = panel + at.c * kInt8Unit;
      for (int64_t k = 0; k < s.keys; k += kInt8Unit, to += kInt8Unit * kInt8Cols) {
        VI unit = {};
        for (int64_t i = 0; i < MinI(kInt8Unit, a.tokens - k); ++i) {
          const VF x = at(v + (k + i) * a.key_stride + col);
          unit |= (NearestInt((x - middle) * inverse) & 255) << (8 * i);
        }
        __builtin_memcpy(to, &unit, at.n * kInt8Unit);
      }
    });
  }
}

// Quantizes rows of q times `factors`. scale[r] becomes the scale of the row's scores,
// large enough that exp of kUnseen is 0.
CLOZE_INLINE void PackQueries(const AttentionArgs& a, const Int8AttentionSizes& s, int64_t first,
    int64_t count, const float* factors, uint8_t* rows, float* scale) {
  const bf16* q = static_cast<const bf16*>(a.q) + first * a.stride;
  for (int64_t r = 0; r < count; ++r, q += a.stride, rows += s.depth) {
    VF most = {};
    ForLanes(a.head_dim, [&](auto at) {
      const VF v = at(q) * at(factors);
      most = Max(most, Abs(v));
    });
    const float least = 32.0f / -kUnseen * kMaxQ * kMaxQ / a.scale, found = MaxLane(most),
                largest = found > least ? found : least, inverse = kMaxQ / largest;
    scale[r] = largest / (kMaxQ * kMaxQ) * a.scale;
    ForLanes(a.head_dim, [&](auto at) {
      StoreBytesAt(at, rows, NearestInt(at(q) * at(factors) * inverse) + kQueryZero);
    });
    __builtin_memset(rows + a.head_dim, 0, s.depth - a.head_dim);
  }
}

// sums [panels, rows, 32] of `rows` rows of `depth` bytes and panels that are `next` bytes apart.
CLOZE_INLINE void SumsOfPanels(int64_t rows, int64_t depth, uint8_t* x, int64_t panels,
    const int8_t* w, int64_t next, int32_t* sums) {
  const Int8Rows left = {rows, depth, x, nullptr, nullptr};
  for (int64_t p = 0; p < panels; ++p, w += next, sums += rows * kInt8Cols) {
    ForInt8Tiles(rows, [&](int64_t, int64_t row, int64_t count) {
      Int8Sums(left, row, count, w, w, sums + row * kInt8Cols);
    });
  }
}

// 255 * 2^x for x <= 0, relative error below 1e-4; at least 255 * 2^-20.
CLOZE_INLINE VF ByteExp2(VF x) {
  x = Max(Splat(-20), x);
  const VF shifted = x + kRounder, r = x - (shifted - kRounder);
  const VF p = Polynomial(r, {14.06877f, 61.86584f, 176.78155f, 254.98166f});
  return AsFloat(AsInt(p) + (AsInt(shifted) << 23));
}

// Rounds 32 values in [0, 255] and stores them as bytes. Returns the sums of the lanes.
constexpr int kPanelVectors = kInt8Cols / W;
CLOZE_INLINE VI StorePanel(uint8_t* to, const VF (&v)[kPanelVectors]) {
  VI sum = {};
#pragma GCC unroll 8
  for (int i = 0; i < kPanelVectors; ++i) {
    const VI q = NearestInt(v[i]);
    StoreBytes(to + i * W, q);
    sum += q;
  }
  return sum;
}

// p [keys] = 255 exp(scale (score - largest)), rounded. Returns their sum. A score is a sum less
// the `zero` of its key. The sums of each further panel are `next` integers after those of the
// panel before. Overwrites the sums of keys that are not seen.
CLOZE_INLINE float SoftmaxBytes(const SeenColumns& seen, int64_t keys, float scale,
    const int32_t* zero, int32_t* sums, int64_t next, uint8_t* p) {
  const auto hide = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) sums[c / kInt8Cols * next + c % kInt8Cols] = kUnseen;
  };
  hide(0, seen.begin);
  hide(seen.end, keys);
  const auto scores = [&](int64_t c, int i) {
    return LoadInts(sums + c / kInt8Cols * next + i * W) - LoadInts(zero + c + i * W);
  };
  VI top = VI{} + kUnseen;
  for (int64_t c = 0; c < keys; c += kInt8Cols) {
#pragma GCC unroll 8
    for (int i = 0; i < kPanelVectors; ++i) {
      const VI score = scores(c, i);
      top = score > top ? score : top;
    }
  }
  const float factor = scale * 1.44269504f,
              largest = MaxLane(__builtin_convertvector(top, VF)) * factor;
  VI total = {};
  for (int64_t c = 0; c < keys; c += kInt8Cols) {
    VF e[kPanelVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kPanelVectors; ++i)
      e[i] = ByteExp2(__builtin_convertvector(scores(c, i), VF) * factor - largest);
    total += StorePanel(p + c, e);
  }
  return Sum(__builtin_convertvector(total, VF));
}

// out = middle + half / 127 * sums * factor[row] for the rows of a block.
CLOZE_INLINE void StoreContext(const AttentionArgs& a, int64_t first, int64_t count,
    const int32_t* sums, const ColumnRanges& range, const float* factor) {
  bf16* out = static_cast<bf16*>(a.out) + first * a.out_stride;
  for (int64_t r = 0; r < count; ++r, sums += kInt8Cols, out += a.out_stride) {
    for (int64_t col = 0; col < a.head_dim; col += kInt8Cols) {
      const int32_t* from = sums + col * count;
      ForLanes(MinI(kInt8Cols, a.head_dim - col), [&](auto at) {
        const VF sum = __builtin_convertvector(LoadInts(from + at.c), VF);
        at.Set(out + col, sum * (factor[r] * at(range.half + col)) + at(range.middle + col));
      });
    }
  }
}

// Requires bf16 rows, no dropout, no prefix and no relative positions. Writes neither lse nor
// probs. Needs less scratch than AttentionForward.
void Int8Attention(const AttentionArgs& a) {
  Int8AttentionSizes s(a);
  float* const ranges = s.Take<float>(6 * s.cols);
  const ColumnRanges key = {ranges, ranges + s.cols, ranges + 2 * s.cols},
                     value = {ranges + 3 * s.cols, ranges + 4 * s.cols, ranges + 5 * s.cols};
  auto* const keys = s.Take<int8_t>(s.keys * s.depth);
  auto* const values = s.Take<int8_t>(s.keys * s.cols);
  auto* const zero = s.Take<int32_t>(s.keys);
  auto* const sums = s.Take<int32_t>(kAttentionQueries * MaxI(s.span, s.cols));
  auto* const queries = s.Take<uint8_t>(kAttentionQueries * s.depth);
  auto* const p = s.Take<uint8_t>(kAttentionQueries * s.span);
  auto* const factor = s.Take<float>(kAttentionQueries);
  FindRanges(a.tokens, a.head_dim, static_cast<const bf16*>(a.k), a.key_stride, key);
  FindRanges(a.tokens, a.head_dim, static_cast<const bf16*>(a.v), a.key_stride, value);
  PackKeys(a, s, key, queries, keys);
  __builtin_memset(queries, kQueryZero, s.depth);  // the sums of a query of zeros
  SumsOfPanels(1, s.depth, queries, s.keys / kInt8Cols, keys, kInt8Cols * s.depth, zero);
  PackValues(a, s, value, values);
  for (int64_t q = 0; q < a.queries; q += kAttentionQueries) {
    const int64_t count = MinI(kAttentionQueries, a.queries - q), row = count * kInt8Cols;
    const KeyRange k = KeysOf(a, kInt8Cols, q, count);
    PackQueries(a, s, q, count, key.half, queries, factor);
    SumsOfPanels(count, s.depth, queries, k.keys / kInt8Cols, keys + k.first * s.depth,
        kInt8Cols * s.depth, sums);
    for (int64_t r = 0; r < count; ++r) {
      const float total = SoftmaxBytes(SeenBy(a, k, q + r), k.keys, factor[r], zero + k.first,
          sums + r * kInt8Cols, row, p + r * k.keys);
      factor[r] = 1 / (kMaxQ * total);
    }
    SumsOfPanels(count, k.keys, p, s.cols / kInt8Cols, values + k.first * kInt8Cols,
        kInt8Cols * s.keys, sums);
    StoreContext(a, q, count, sums, value, factor);
  }
}

#endif

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_INT8_ATTENTION_H_
