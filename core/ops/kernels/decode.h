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
  const T *q = static_cast<const T*>(a.q), *keys = static_cast<const T*>(a.k),
          *values = static_cast<const T*>(a.v);
  float *p = a.scratch, *sum = p + a.keys, top = -3e38f, total = 0;
  for (int64_t j = 0; j < a.keys; ++j) {
    const T* k = keys + a.rows[j] * a.stride;
    VF product = {};
    Sweep(a.head_dim, [&](auto at) { product += at(q) * at(k); });
    p[j] = Sum(product) * a.scale;
    top = p[j] > top ? p[j] : top;
  }
  Sweep(a.keys, [&](auto at) { at.Set(p, Exp(at(p) - top)); });
  __builtin_memset(sum, 0, a.head_dim * sizeof(float));
  for (int64_t j = 0; j < a.keys; ++j) {
    const T* v = values + a.rows[j] * a.stride;
    total += p[j];
    Sweep(a.head_dim, [&](auto at) { at.Set(sum, at(sum) + at(v) * p[j]); });
  }
  Sweep(a.head_dim, [&](auto at) { at.Set(static_cast<T*>(a.out), at(sum) * (1.0f / total)); });
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_DECODE_H_
