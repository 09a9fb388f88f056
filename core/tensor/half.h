// Conversions between f32 and the 16-bit float types of files.
#ifndef CLOZE_CORE_TENSOR_HALF_H_
#define CLOZE_CORE_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

#include "core/tensor/mat.h"

namespace cloze {

// Converts exactly.
inline float Bf16ToFloat(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// Rounds to nearest even. Overflows to infinity. NaN stays a quiet NaN.
Bf16 FloatToBf16(float x);

// Converts an IEEE 754 binary16 exactly.
float HalfToFloat(uint16_t bits);

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_HALF_H_
