// The kernels of one instruction set. One translation unit, so that the pieces inline into each
// other.
#include "core/ops/kernels/attention.h"
#include "core/ops/kernels/gradient.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/kernels/norm.h"
#include "core/ops/kernels/pack.h"
#include "core/ops/kernels/pointwise.h"
#include "core/ops/kernels/product.h"

#define CLOZE_STRING_INNER(x) #x
#define CLOZE_STRING(x) CLOZE_STRING_INNER(x)
#define CLOZE_PASTE_INNER(a, b) a##b
#define CLOZE_PASTE(a, b) CLOZE_PASTE_INNER(a, b)

namespace cloze {

extern const Kernels CLOZE_PASTE(kKernels_, CLOZE_ISA);
const Kernels CLOZE_PASTE(kKernels_, CLOZE_ISA) = {
    .name = CLOZE_STRING(CLOZE_ISA),
    .multiplies_bf16 = kPair<bf16> == 2,
    .norm = {NormForward<float>, NormForward<bf16>},
    .norm_grad = {NormBackward<float>, NormBackward<bf16>},
    .activation = {ActivationForward<float>, ActivationForward<bf16>},
    .activation_grad = {ActivationBackward<float>, ActivationBackward<bf16>},
    .column_sum = {ColumnSum<float>, ColumnSum<bf16>},
    .dropout = {Dropout<float>, Dropout<bf16>},
    .embed = {Embed<float>, Embed<bf16>},
    .sum_rows = {SumRows<float>, SumRows<bf16>},
    .attention = {AttentionForward<float>, AttentionForward<bf16>},
    .attention_grad = {AttentionBackward<float>, AttentionBackward<bf16>},
    .softmax_loss = {SoftmaxLoss<float>, SoftmaxLoss<bf16>},
    .combine = {Combine<float>, Combine<bf16>},
    .convert = {{Convert<float, float>, Convert<float, bf16>},
        {Convert<bf16, float>, Convert<bf16, bf16>}},
    .pack = {Pack<float>, Pack<bf16>},
#ifdef __AMX_BF16__
    .gradient_panels = Panels,
    .gradient = Gradient,
    .product = {Product<float>, Product<bf16>},
#endif
    .adamw = AdamW,
    .sum_squares = SumSquares,
};

}  // namespace cloze
