// Rotation of pairs of columns by angles that depend on the row's position.
#ifndef CLOZE_CORE_OPS_KERNELS_ROTARY_H_
#define CLOZE_CORE_OPS_KERNELS_ROTARY_H_

#include "core/ops/kernels/simd.h"

namespace cloze {

// Rows of x are `stride` elements apart, with `heads` groups of `dim` columns.
struct RotaryArgs {
  int64_t rows, heads, dim, stride;
  const int32_t* position;  // [rows]
  const float* table;       // [positions, dim]: dim / 2 cosines, then dim / 2 sines
  float sign;               // of the angles
};

#ifdef CLOZE_ISA
namespace {

// Columns m and m + dim / 2 of each head are the coordinates of a point in a plane.
template <typename T>
void Rotate(const RotaryArgs& a, void* x) {
  const int64_t half = a.dim / 2;
  for (int64_t r = 0; r < a.rows; ++r) {
    const float *cosine = a.table + a.position[r] * a.dim, *sine = cosine + half;
    T* first = static_cast<T*>(x) + r * a.stride;
    for (int64_t h = 0; h < a.heads; ++h, first += a.dim) {
      T* second = first + half;
      ForLanes(half, [&](auto at) {
        const VF u = at(first), v = at(second), c = at(cosine), s = at(sine) * a.sign;
        at.Set(first, u * c - v * s);
        at.Set(second, v * c + u * s);
      });
    }
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_ROTARY_H_
