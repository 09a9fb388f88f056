// Element types of activations.
#ifndef CLOZE_CORE_TENSOR_DTYPE_H_
#define CLOZE_CORE_TENSOR_DTYPE_H_

#include <cstdint>

namespace cloze {

// Chosen for each run, not at compile time. kS8 is for packed weights only.
enum class DType : uint8_t { kF32, kBf16, kS8 };

inline int64_t SizeOf(DType type) { return type == DType::kF32 ? 4 : type == DType::kBf16 ? 2 : 1; }

// Returns "f32", "bf16" or "s8".
inline const char* NameOf(DType type) {
  return type == DType::kF32 ? "f32" : type == DType::kBf16 ? "bf16" : "s8";
}

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_DTYPE_H_
