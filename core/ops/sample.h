// Draws labels from predictions.
#ifndef CLOZE_CORE_OPS_SAMPLE_H_
#define CLOZE_CORE_OPS_SAMPLE_H_

#include <cstdint>

#include "core/tensor/mat.h"

namespace cloze {

// Draws samples [rows] from softmax(logits), logits [rows, labels] f32 or bf16: the first label at
// which the distribution function exceeds the row's number in uniforms [rows], each in [0, 1). Rows
// with NaN get any label.
void SampleRows(ConstMat logits, const float* uniforms, int32_t* samples);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_SAMPLE_H_
