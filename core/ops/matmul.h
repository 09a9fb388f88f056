// Matrix products of linear layers, forward and backward.
#ifndef CLOZE_CORE_OPS_MATMUL_H_
#define CLOZE_CORE_OPS_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/tensor/mat.h"

namespace cloze {

// A weight matrix w [out, in], f32. A new version of its content makes the packed copies stale.
struct Weight {
  ConstMat w;
  uint64_t version = 0;
  // Forward products are computed in int8, for inference: rows of x as u8 with a scale and a zero
  // point each, rows of w as s8 with a scale each, exact sums. A row's bits do not depend on other
  // rows. Requires in <= kInt8MaxDepth.
  bool int8 = false;
};

// A linear layer: the bias [out] is f32 or null.
struct WeightAndBias {
  Weight w;
  const float* bias;
};
enum class ActivationKind : uint8_t;

// Largest `in` of a weight in int8: sums of this many products do not overflow.
inline constexpr int64_t kInt8MaxDepth = 65536;

// Caches primitives (by shape) and packed weights (by address). Activations are f32 or bf16; unless
// the weight is in int8, both are multiplied in their ProductType. Not thread-safe: one per model.
// Results have the same bits for any number of threads.
class Matmul {
 public:
  Matmul();
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // y [n, out] = x [n, in] w^T + bias, bias [out] f32 or null; with `accumulate`, added to y, not
  // in int8. y may be f32 if x is bf16.
  void Forward(ConstMat x, const Weight& w, const float* bias, Mat y, bool accumulate = false);
  // y [n, out] = down(act(up(x))) of layers in int8, a few rows at a time, so that the intermediate
  // values stay in the cache; act is computed before rounding to the type of y.
  void ForwardMlp(
      ConstMat x, const WeightAndBias& up, ActivationKind act, const WeightAndBias& down, Mat y);
  // From now on Forward uses `values` [out, in] f32 for the weight `w` in int8, whatever its
  // version; w itself is not read.
  void Pin(const Weight& w, ConstMat values);
  // dx [n, in] = dy [n, out] w; with `accumulate`, added to dx.
  void BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate = false);
  // dw [out, in] f32 += dy^T [out, n] x [n, in].
  void BackwardWeight(ConstMat dy, ConstMat x, Mat dw);
  // Both gradients; dx must be neither x nor dy.
  void Backward(ConstMat x, const Weight& w, ConstMat dy, Mat dw, Mat dx, bool accumulate = false);

  // Lets weights of equal shape share one packed copy; faster if each weight is used once per
  // update. Off by default.
  void SharePacked(bool share);
  // Frees the packed weights.
  void DropPacked();
  // Bytes held by packed weights.
  int64_t packed_bytes() const;
  // Returns upper bounds of the memory that the passes of the dry runs since the last call need,
  // and resets them.
  struct Memory {
    int64_t packed = 0;   // packed weights
    int64_t scratch = 0;  // of BackwardWeight, and for conversions
  };
  Memory TakeDryMemory();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// Returns library, version and instruction set, as "oneDNN 2.6.3 (avx512_core_bf16)".
std::string MatmulLibrary();
// Returns instruction set, version and compiler of our kernels, as "amx 2, GCC 12.2.0". Together
// with MatmulLibrary() they determine the bits of all results.
std::string KernelsName();
// True if the CPU multiplies bf16.
bool MultipliesBf16();
// True if it does so faster than f32. In virtual machines that hide AMX, Intel's CPUs from Sapphire
// Rapids on multiply vectors of bf16 at half the rate of f32 (docs/commands.md, Precision).
bool Bf16IsFaster();
// Returns the type that Matmul converts activations of `type`, and weights, to: f32 for bf16 if the
// CPU does not multiply it.
DType ProductType(DType type);
// The type of activations between linear layers in int8. bf16 on all CPUs: halving the memory
// traffic saves more time than the conversions cost.
inline constexpr DType kInt8Activations = DType::kBf16;

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_MATMUL_H_
