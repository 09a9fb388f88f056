// Linear combinations, conversions and column sums.
#ifndef CLOZE_CORE_OPS_ELEMENTWISE_H_
#define CLOZE_CORE_OPS_ELEMENTWISE_H_

#include "core/tensor/arena.h"
#include "core/tensor/mat.h"

namespace cloze {

// y = a x + b y; x may be y. With b = 0, y is not read.
void Axpby(float a, ConstMat x, float b, Mat y);

// dst = src, converted to the type of dst.
void Convert(ConstMat src, Mat dst);

// sum [cols] += column sums of x; does nothing if sum is null.
void AddColumnSums(ConstMat x, Arena& arena, float* sum);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ELEMENTWISE_H_
