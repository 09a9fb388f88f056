// Matrix views, which do not own their data: 2-D, row-major, rows `stride` elements apart.
#ifndef CLOZE_CORE_TENSOR_MAT_H_
#define CLOZE_CORE_TENSOR_MAT_H_

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace cloze {

// A bfloat16: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

template <typename T>
constexpr DType kDTypeOf = sizeof(T) == 4 ? DType::kF32 : DType::kBf16;

// Read-only view [rows, cols].
struct ConstMat {
  const void* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  DType type = DType::kF32;

  bool empty() const { return data == nullptr; }
  template <typename T>
  const T* row(int64_t r) const {
    CLOZE_CHECK(type == kDTypeOf<T>);
    return static_cast<const T*>(data) + r * stride;
  }
  const float* f32(int64_t r = 0) const { return row<float>(r); }
};

// Writable view [rows, cols].
struct Mat {
  void* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  DType type = DType::kF32;

  bool empty() const { return data == nullptr; }
  operator ConstMat() const { return {data, rows, cols, stride, type}; }
  template <typename T>
  T* row(int64_t r) const {
    CLOZE_CHECK(type == kDTypeOf<T>);
    return static_cast<T*>(data) + r * stride;
  }
  float* f32(int64_t r = 0) const { return row<float>(r); }
};

inline Mat View(float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, DType::kF32};
}
inline ConstMat View(const float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, DType::kF32};
}

// Returns columns [begin, begin + cols) of `m`.
inline Mat Columns(Mat m, int64_t begin, int64_t cols) {
  return {static_cast<char*>(m.data) + begin * SizeOf(m.type), m.rows, cols, m.stride, m.type};
}
inline ConstMat Columns(ConstMat m, int64_t begin, int64_t cols) {
  return {
      static_cast<const char*>(m.data) + begin * SizeOf(m.type), m.rows, cols, m.stride, m.type};
}
// Returns rows [begin, begin + rows) of `m`.
inline Mat Rows(Mat m, int64_t begin, int64_t rows) {
  return {static_cast<char*>(m.data) + begin * m.stride * SizeOf(m.type), rows, m.cols, m.stride,
      m.type};
}
inline ConstMat Rows(ConstMat m, int64_t begin, int64_t rows) {
  return {static_cast<const char*>(m.data) + begin * m.stride * SizeOf(m.type), rows, m.cols,
      m.stride, m.type};
}

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_MAT_H_
