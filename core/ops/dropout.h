// Dropout, reproducible from a seed and the coordinates of each row.
#ifndef CLOZE_CORE_OPS_DROPOUT_H_
#define CLOZE_CORE_OPS_DROPOUT_H_

#include <cstdint>

#include "core/ops/kernels/dropout.h"
#include "core/tensor/mat.h"

namespace cloze {

// Coordinates of packed rows, which determine their random numbers independently of the batch.
// Arrays of [rows].
struct RowCoordinates {
  const uint64_t* example = nullptr;  // global number of the row's example
  const int32_t* position = nullptr;  // of the row in its sequence
};

// Dropout with probability p (0: none) at one site of the model.
struct DropoutSite {
  float p = 0;
  uint64_t seed = 0;
  uint32_t site = 0;  // number of the site; unique in the model
  RowCoordinates rows;
};

// y = dropout(x); its backward is the same function of dy. x, y [rows, cols] without gaps; may be
// the same.
void Dropout(ConstMat x, const DropoutSite& site, Mat y);

// Returns the kernels' description of `site` for rows from `row` on.
RowDropout RowsFrom(const DropoutSite& site, int64_t row);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_DROPOUT_H_
