// oneDNN, and the differences between its versions 2.x and 3.x. Only for core/ops/*.cc and
// tools/bench.
#ifndef CLOZE_CORE_OPS_ONEDNN_H_
#define CLOZE_CORE_OPS_ONEDNN_H_

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "core/ops/matmul_engine.h"
#include "core/tensor/mat.h"

namespace cloze {

inline dnnl::memory::data_type TypeOf(DType type) {
  return type == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

// A plain matrix. oneDNN 3 computes wrong products of vectors if their strides do not tell which
// dimension is contiguous, so Describe gives vectors the strides of a row-major matrix. That is
// impossible for a column with gaps between its elements; MakePrimitive refuses it.
inline dnnl::memory::desc Describe(
    int64_t rows, int64_t cols, DType type, int64_t row_stride, int64_t col_stride) {
  if (rows == 1 && col_stride == 1) row_stride = std::max(row_stride, cols);
  if (cols == 1 && (rows == 1 || row_stride == 1)) row_stride = col_stride = 1;
  return dnnl::memory::desc({rows, cols}, TypeOf(type), dnnl::memory::dims{row_stride, col_stride});
}
inline dnnl::memory::desc Describe(ConstMat m) {
  return Describe(m.rows, m.cols, m.type, m.stride, 1);
}
inline dnnl::memory::desc DescribeTransposed(ConstMat m) {
  return Describe(m.cols, m.rows, m.type, 1, m.stride);
}

inline dnnl::memory::dims DimsOf(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

// Returns the strides of a plain matrix, none if oneDNN may choose the layout.
inline dnnl::memory::dims StridesOf(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return {};
  return desc.get_strides();
#else
  if (desc.data.format_kind != dnnl_blocked) return {};
  const dnnl_dims_t& strides = desc.data.format_desc.blocking.strides;
  return {strides[0], strides[1]};
#endif
}

// True unless `desc` is a vector whose strides are not those of a row-major matrix.
inline bool Unambiguous(const dnnl::memory::desc& desc) {
  const dnnl::memory::dims dims = DimsOf(desc), strides = StridesOf(desc);
  if (strides.empty() || (dims[0] > 1 && dims[1] > 1)) return true;
  return strides[1] == 1 && (dims[1] == 1 ? strides[0] == 1 : strides[0] >= dims[1]);
}

// Returns the layout of a product's weights [depth, cols]. Its `blocks` stay empty unless the
// kernel Pack can write them.
inline WeightLayout BlocksOf(const dnnl::memory::desc& desc) {
  const dnnl::memory::dims dims = DimsOf(desc);
  WeightLayout layout;
  layout.depth = dims[0], layout.cols = dims[1];
  layout.bytes = static_cast<int64_t>(desc.get_size());
#if DNNL_VERSION_MAJOR >= 3
  const bool wide = desc.get_data_type() == dnnl::memory::data_type::f32;
  layout.type = wide ? DType::kF32 : DType::kBf16;
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return layout;
  const auto count = desc.get_inner_nblks();
  const dnnl::memory::dims blocks = desc.get_inner_blks(), axes = desc.get_inner_idxs(),
                           strides = desc.get_strides();
#else
  const bool wide = desc.data.data_type == dnnl_f32;
  layout.type = wide ? DType::kF32 : DType::kBf16;
  const auto& [strides, count, blocks, axes] = desc.data.format_desc.blocking;
  if (desc.data.format_kind != dnnl_blocked || desc.data.extra.flags != 0 || desc.data.offset0 != 0)
    return layout;
#endif
  // Blocks of 16 (pairs) by a multiple of 16 columns, as 16a64b of f32 and 16a64b2a of bf16.
  const bool known = count == (wide ? 2 : 3) && axes[0] == 0 && axes[1] == 1 &&
                     blocks[0] == kPackUnits && (wide || (axes[2] == 0 && blocks[2] == 2)) &&
                     blocks[1] % 16 == 0;
  if (!known) return layout;
  layout.blocks = {wide ? kPackUnits : 2 * kPackUnits, blocks[1], strides[0], strides[1]};
  return layout;
}

// Operands of dst (+)= src weights + bias.
struct Operands {
  dnnl::memory::desc src, weights;
  std::optional<dnnl::memory::desc> bias;
  dnnl::memory::desc dst;
  bool accumulate;
};

inline dnnl::matmul::primitive_desc MakePrimitive(const dnnl::engine& engine, const Operands& o) {
  CLOZE_CHECK(Unambiguous(o.src) && Unambiguous(o.weights) && Unambiguous(o.dst));
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (o.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attr.set_post_ops(post);
  }
#if DNNL_VERSION_MAJOR >= 3
  using Desc = dnnl::matmul::primitive_desc;
  return o.bias ? Desc(engine, o.src, o.weights, *o.bias, o.dst, attr)
                : Desc(engine, o.src, o.weights, o.dst, attr);
#else
  using Desc = dnnl::matmul::desc;
  return {o.bias ? Desc(o.src, o.weights, *o.bias, o.dst) : Desc(o.src, o.weights, o.dst), attr,
      engine};
#endif
}

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ONEDNN_H_
