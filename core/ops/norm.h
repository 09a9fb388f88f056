// Layer norm with the residual sum and dropout around it.
#ifndef CLOZE_CORE_OPS_NORM_H_
#define CLOZE_CORE_OPS_NORM_H_

#include "core/ops/dropout.h"
#include "core/ops/kernels/norm.h"
#include "core/tensor/arena.h"

namespace cloze {

struct NormGrads {
  float *gain, *bias;  // [cols], accumulated; or null
  float* dx_sum;       // [cols] or null: += column sums of dx, the bias gradient of x's layer
};

// z = residual + in(x); y = out(norm(z)), norm(z) = (z - mean) rstd gain + bias. x or residual may
// be empty; all [rows, cols].
void NormForward(ConstMat x, ConstMat residual, const NormParams& p, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y, NormStats stats);
// dz: gradient of z, also that of the residual. dz_in: gradient from other uses of z, added to dz;
// may be empty. dx: gradient of x; empty or dz itself when x has no dropout.
void NormBackward(ConstMat dy, ConstMat z, NormStats stats, const NormParams& p,
    const DropoutSite& in, const DropoutSite& out, ConstMat dz_in, const NormGrads& grads,
    Arena& arena, Mat dz, Mat dx);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_NORM_H_
