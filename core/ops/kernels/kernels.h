// The kernels: loops over one range of rows on one thread, compiled once per instruction set.
// Callers (core/ops/*.cc) split the work and check shapes. Each kernel's header holds its
// arguments, of plain types, and, for files compiled per instruction set (CLOZE_ISA), its code.
#ifndef CLOZE_CORE_OPS_KERNELS_KERNELS_H_
#define CLOZE_CORE_OPS_KERNELS_KERNELS_H_

#include <cstdint>

#include "core/ops/kernels/activation.h"
#include "core/ops/kernels/adamw.h"
#include "core/ops/kernels/attention.h"
#include "core/ops/kernels/decode.h"
#include "core/ops/kernels/dropout.h"
#include "core/ops/kernels/f32_product.h"
#include "core/ops/kernels/int8.h"
#include "core/ops/kernels/int8_attention.h"
#include "core/ops/kernels/int8_product.h"
#include "core/ops/kernels/loss.h"
#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/nearest.h"
#include "core/ops/kernels/norm.h"
#include "core/ops/kernels/relative.h"
#include "core/ops/kernels/rotary.h"
#include "core/ops/kernels/rows.h"
#include "core/ops/kernels/word_vectors.h"
#include "core/tensor/dtype.h"

namespace cloze {

// A kernel for each element type of activations.
template <typename Function>
struct PerType {
  Function* f32 = nullptr;
  Function* bf16 = nullptr;
  Function* operator[](DType type) const { return type == DType::kF32 ? f32 : bf16; }
};

// All kernels, one line each: name, function, signature. TYPED: a template over the element type T
// of activations, passed as void*. PLAIN: a function. AMX_...: null without a matrix unit. AVX2:
// null unless the vectors have 256 bits.
#define CLOZE_KERNELS(TYPED, PLAIN, AMX_TYPED, AMX_PLAIN, AVX2)                                    \
  TYPED(norm, NormForward, void(const NormArgs&))                                                  \
  TYPED(norm_grad, NormBackward, void(const NormGradArgs&))                                        \
  TYPED(activation, ActivationForward, void(ActivationKind, int64_t n, const void* u, void* y))    \
  TYPED(activation_grad, ActivationBackward,                                                       \
      void(ActivationKind, int64_t rows, int64_t cols, const void* u, const void* dy, void* y,     \
          void* du, float* bias_sum))                                                              \
  TYPED(gated, GatedForward,                                                                       \
      void(ActivationKind, int64_t rows, int64_t cols, const void* u, void* y))                    \
  TYPED(gated_grad, GatedBackward,                                                                 \
      void(ActivationKind, int64_t rows, int64_t cols, const void* u, void* dy, void* du))         \
  TYPED(rotate, Rotate, void(const RotaryArgs&, void* x))                                          \
  TYPED(column_sum, ColumnSum,                                                                     \
      void(int64_t rows, int64_t cols, const void* x, int64_t stride, float* sum))                 \
  TYPED(dropout, Dropout,                                                                          \
      void(int64_t rows, int64_t cols, const void* x, void* y, const RowDropout&))                 \
  TYPED(embed, Embed,                                                                              \
      void(int64_t rows, int64_t cols, const float* a, const int32_t* ia, const float* b,          \
          const int32_t* ib, const float* c, const int32_t* ic, void* x))                          \
  TYPED(sum_rows, SumRows,                                                                         \
      void(int64_t rows, int64_t cols, const void* x, const int32_t* index, float* out, bool add)) \
  TYPED(attention, AttentionForward, void(const AttentionArgs&))                                   \
  TYPED(attention_grad, AttentionBackward, void(const AttentionGradArgs&))                         \
  PLAIN(int8_attention, Int8Attention, void(const AttentionArgs&))                                 \
  TYPED(decode_attention, DecodeAttention, void(const DecodeArgs&))                                \
  TYPED(pack_relative, PackRelative, void(const RelativePackArgs&))                                \
  TYPED(softmax_loss, SoftmaxLoss, LossRow(int64_t n, void* x, int32_t target, float scale))       \
  TYPED(axpby, Axpby, void(int64_t n, float a, const void* x, float b, void* y))                   \
  TYPED(convert, Convert, void(int64_t n, const void* x, bool narrow, void* y))                    \
  TYPED(pack, Pack, void(const PackArgs&))                                                         \
  PLAIN(adamw, AdamWUpdate, void(const AdamArgs&))                                                 \
  PLAIN(sum_update_ratios, SumUpdateRatios, double(const AdamArgs&))                               \
  PLAIN(sum_squares, SumSquares, double(int64_t n, const float* x))                                \
  PLAIN(negative_sampling, NegativeSampling, double(const NegativeSamplingArgs&))                  \
  TYPED(dot_rows, DotRows,                                                                         \
      void(int64_t rows, int64_t cols, const void* x, const float* q, float* out))                 \
  PLAIN(dot_int8_rows, DotInt8Rows,                                                                \
      void(int64_t rows, int64_t cols, const int8_t* x, const float* q, float* out))               \
  PLAIN(widen_int8, WidenInt8, void(int64_t cols, const int8_t* x, float scale, float* y))         \
  PLAIN(add_rows, AddRows,                                                                         \
      void(int64_t n, const RowUpdate*, int64_t cols, const float* x, float* table))               \
  TYPED(quantize_rows, QuantizeRows, void(const QuantizeArgs&))                                    \
  PLAIN(pack_int8, PackInt8, void(const Int8PackArgs&))                                            \
  TYPED(int8_product, Int8Product, void(const Int8ProductArgs&))                                   \
  AMX_TYPED(product, Product, void(const ProductArgs&))                                            \
  AMX_PLAIN(gradient_panels, Panels, void(const PanelArgs&))                                       \
  AMX_PLAIN(gradient, Gradient, void(const GradientArgs&))                                         \
  AVX2(f32_product, F32Product, void(const ProductArgs&))                                          \
  AVX2(f32_gradient, F32Gradient, void(const F32GradientArgs&))

// One table per instruction set, with a member for each line above.
struct Kernels {
  const char* name;
  bool multiplies_bf16;
#define CLOZE_TYPED(member, function, ...) PerType<__VA_ARGS__> member = {};
#define CLOZE_PLAIN(member, function, ...) \
  using member##_function = __VA_ARGS__;   \
  member##_function* member = nullptr;
  CLOZE_KERNELS(CLOZE_TYPED, CLOZE_PLAIN, CLOZE_TYPED, CLOZE_PLAIN, CLOZE_PLAIN)
#undef CLOZE_TYPED
#undef CLOZE_PLAIN
};

// Returns the best table that this CPU can run. CLOZE_MAX_ISA=amx|avx512bf16|avx512vnni|avx512|
// avx2vnni|avx2|baseline in the environment lowers it, for tests and mixed clusters.
const Kernels& GetKernels();

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_KERNELS_H_
