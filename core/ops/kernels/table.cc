// The kernels of one instruction set, in one translation unit so that they inline into each other.
#include "core/ops/kernels/kernels.h"

#define CLOZE_STRING_INNER(x) #x
#define CLOZE_STRING(x) CLOZE_STRING_INNER(x)
#define CLOZE_PASTE_INNER(a, b) a##b
#define CLOZE_PASTE(a, b) CLOZE_PASTE_INNER(a, b)
#define CLOZE_TYPED(member, function, ...) .member = {function<float>, function<bf16>},
#define CLOZE_PLAIN(member, function, ...) .member = function,
#define CLOZE_NONE(...)

namespace cloze {

extern const Kernels CLOZE_PASTE(kKernels_, CLOZE_ISA);
const Kernels CLOZE_PASTE(kKernels_, CLOZE_ISA) = {.name = CLOZE_STRING(CLOZE_ISA),
    .multiplies_bf16 = kMultipliesBf16,
#if defined(__AMX_BF16__)
    CLOZE_KERNELS(CLOZE_TYPED, CLOZE_PLAIN, CLOZE_TYPED, CLOZE_PLAIN, CLOZE_NONE)
#elif defined(__AVX2__) && !defined(__AVX512F__)
    CLOZE_KERNELS(CLOZE_TYPED, CLOZE_PLAIN, CLOZE_NONE, CLOZE_NONE, CLOZE_PLAIN)
#else
    CLOZE_KERNELS(CLOZE_TYPED, CLOZE_PLAIN, CLOZE_NONE, CLOZE_NONE, CLOZE_NONE)
#endif
};

}  // namespace cloze
