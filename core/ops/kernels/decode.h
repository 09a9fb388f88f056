// Attention of one query to cached keys and values.
#ifndef CLOZE_CORE_OPS_KERNELS_DECODE_H_
#define CLOZE_CORE_OPS_KERNELS_DECODE_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

struct DecodeArgs {
  int64_t keys, head_dim, stride;  // stride: elements between rows of the cache
  const int32_t* rows;             // [keys] rows of the cache that the query sees
  const void *q, *k, *v;           // T [head_dim], T [., head_dim], T [., head_dim]
  void* out;                       // T [head_dim]
  float scale;
  float* scratch;  // keys + head_dim floats
};

#ifdef CLOZE_ISA
namespace {

template <typename T>
void DecodeAttention(const DecodeArgs& a) {
  constexpr int64_t kAhead = 12;  // rows
  constexpr int kBlock = 4;       // vectors of a row that are summed in registers
  const T *keys = static_cast<const T*>(a.k), *values = static_cast<const T*>(a.v);
  float *p = a.scratch, *q = p + a.keys, top = -3e38f;
  ForLanes(a.head_dim, [&](auto at) { at.Set(q, at(static_cast<const T*>(a.q)) * a.scale); });
  for (int64_t j = 0; j < MinI(kAhead, a.keys); ++j)
    PrefetchRow(keys + a.rows[j] * a.stride, a.head_dim);
  for (int64_t j = 0; j < a.keys; ++j) {
    if (j + kAhead < a.keys) PrefetchRow(keys + a.rows[j + kAhead] * a.stride, a.head_dim);
    PrefetchRow(values + a.rows[j] * a.stride, a.head_dim);
    const T* k = keys + a.rows[j] * a.stride;
    VF product = {};
    ForLanes(a.head_dim, [&](auto at) { product += at(q) * at(k); });
    p[j] = Sum(product);
    top = p[j] > top ? p[j] : top;
  }
  VF total = {};
  ForLanes(a.keys, [&](auto at) {
    const VF e = Exp(at(p) - top);
    at.Set(p, e);
    total += at.Only(e);
  });
  const float inverse = 1.0f / Sum(total);
  T* out = static_cast<T*>(a.out);
  int64_t c = 0;
  for (; c + kBlock * W <= a.head_dim; c += kBlock * W) {
    VF sum[kBlock] = {};
    for (int64_t j = 0; j < a.keys; ++j) {
      const T* v = values + a.rows[j] * a.stride + c;
      for (int b = 0; b < kBlock; ++b) sum[b] += Load(v + b * W) * p[j];
    }
    for (int b = 0; b < kBlock; ++b) Store(out + c + b * W, sum[b] * inverse);
  }
  ForLanes(a.head_dim - c, [&](auto at) {
    VF sum = {};
    for (int64_t j = 0; j < a.keys; ++j) sum += at(values + a.rows[j] * a.stride + c) * p[j];
    at.Set(out + c, sum * inverse);
  });
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_DECODE_H_
