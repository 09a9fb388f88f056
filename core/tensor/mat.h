// Matrix views, which do not own their data: 2-D, row-major, rows `stride` elements apart.
#ifndef CLOZE_CORE_TENSOR_MAT_H_
#define CLOZE_CORE_TENSOR_MAT_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace cloze {

// Return n / unit rounded up, and n rounded up to a multiple of unit. Require n >= 0, unit > 0.
constexpr int64_t CeilDiv(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return CeilDiv(n, unit) * unit; }

// A bfloat16: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

// Convert exactly from bfloat16 and from IEEE 754 binary16.
inline float Bf16ToFloat(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 0x1F,
                 fraction = bits & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// True if no value is NaN or infinite. Tests the exponent bits, which the compiler vectorizes.
inline bool AllFinite(absl::Span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t odd = 0;
  for (const float x : values) odd |= (std::bit_cast<uint32_t>(x) & kExponent) == kExponent;
  return odd == 0;
}

template <typename T>
constexpr DType kDTypeOf = sizeof(T) == 4 ? DType::kF32 : DType::kBf16;

// View [rows, cols]; Void is `void`, or `const void` for a read-only one.
template <typename Void>
struct BasicMat {
  template <typename T>
  using Like = std::conditional_t<std::is_const_v<Void>, const T, T>;

  Void* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  DType type = DType::kF32;

  bool empty() const { return data == nullptr; }
  operator BasicMat<const void>() const requires(!std::is_const_v<Void>) {
    return {data, rows, cols, stride, type};
  }
  template <typename T>
  Like<T>* row(int64_t r) const {
    CLOZE_CHECK(type == kDTypeOf<T>);
    return static_cast<Like<T>*>(data) + r * stride;
  }
  Like<float>* f32(int64_t r = 0) const { return row<float>(r); }
  // Returns the address of element (r, c).
  Void* at(int64_t r, int64_t c) const {
    return static_cast<Like<char>*>(data) + (r * stride + c) * SizeOf(type);
  }
};
using Mat = BasicMat<void>;
using ConstMat = BasicMat<const void>;

inline Mat View(float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, DType::kF32};
}
inline ConstMat View(const float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, DType::kF32};
}

// Returns columns [begin, begin + cols) of `m`.
template <typename Void>
BasicMat<Void> Columns(BasicMat<Void> m, int64_t begin, int64_t cols) {
  return {m.at(0, begin), m.rows, cols, m.stride, m.type};
}
// Returns rows [begin, begin + rows) of `m`.
template <typename Void>
BasicMat<Void> Rows(BasicMat<Void> m, int64_t begin, int64_t rows) {
  return {m.at(begin, 0), rows, m.cols, m.stride, m.type};
}

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_MAT_H_
