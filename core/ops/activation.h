// Activation functions, elementwise.
#ifndef CLOZE_CORE_OPS_ACTIVATION_H_
#define CLOZE_CORE_OPS_ACTIVATION_H_

#include "core/ops/kernels/activation.h"
#include "core/tensor/arena.h"

namespace cloze {

// y = act(u). u, y [rows, cols] without gaps.
void ActivationForward(ActivationKind kind, ConstMat u, Mat y);
// Recomputes y = act(u); du = dy act'(u), may be dy; dbias [cols] += column sums of du, unless it
// is null.
void ActivationBackward(
    ActivationKind kind, ConstMat u, ConstMat dy, float* dbias, Arena& arena, Mat y, Mat du);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ACTIVATION_H_
