// 16-bit tensors for tests; the product only reads them.
#ifndef CLOZE_TESTS_CORE_TENSOR_HALF_VALUES_H_
#define CLOZE_TESTS_CORE_TENSOR_HALF_VALUES_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/tensor/mat.h"
#include "core/tensor/safetensors.h"

namespace cloze {

// Returns `x` as IEEE 754 binary16, rounded to nearest even, also subnormals. Overflows to
// infinity. NaN stays a quiet NaN.
inline uint16_t FloatToHalf(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7FFFFFFF;
  const uint16_t sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) return sign | 0x7E00 | (magnitude >> 13 & 0x3FF);
  if (magnitude >= 0x47800000) return sign | 0x7C00;  // 65536 and more
  if (magnitude < 0x38800000) {  // below the smallest normal: units of 2^-24, rounded by the FPU
    return sign | static_cast<uint16_t>(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f));
  }
  return sign |
         static_cast<uint16_t>((magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

// Rounds to nearest even. Overflows to infinity. NaN stays a quiet NaN.
inline Bf16 FloatToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

// Returns `values` as elements of type kF16 or kBf16.
inline std::vector<uint16_t> SixteenBits(absl::Span<const float> values, FileType type) {
  std::vector<uint16_t> out;
  for (const float x : values)
    out.push_back(type == FileType::kF16 ? FloatToHalf(x) : FloatToBf16(x).bits);
  return out;
}

}  // namespace cloze

#endif  // CLOZE_TESTS_CORE_TENSOR_HALF_VALUES_H_
