// Activation functions, elementwise, alone and as gates.
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

// Gated linear units (Shazeer 2020): y [rows, cols] = act(a) g for u = [a; g] [rows, 2 cols].
void GatedForward(ActivationKind kind, ConstMat u, Mat y);
// Overwrites du [rows, 2 cols], and dy [rows, cols] with y.
void GatedBackward(ActivationKind kind, ConstMat u, Mat dy, Mat du);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ACTIVATION_H_
