// Weights in the blocks that matrix products read.
#ifndef CLOZE_CORE_OPS_KERNELS_PACK_H_
#define CLOZE_CORE_OPS_KERNELS_PACK_H_

#include <cstdint>

#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/simd.h"

namespace cloze {

// Packs a weight [depth, cols], given as f32 with one of its steps 1, into blocks. Element (k, n),
// at from[k * depth_step + n * cols_step], goes to to[k / block_depth * depth_stride + n /
// block_cols * cols_stride + block], where with g = block_depth / kPackUnits (1 for f32, 2 for
// bf16) block = (k % block_depth / g * block_cols + n % block_cols) * g + k % g. block_cols is a
// multiple of 16. Blocks are padded with zeros.
constexpr int64_t kPackUnits = 16;
struct PackArgs {
  int64_t depth, cols, depth_step, cols_step, block_depth, block_cols, depth_stride, cols_stride;
  const float* from;
  void* to;  // T
};

#ifdef CLOZE_ISA
namespace {

// A block reads a little of each of many rows: too many streams for the hardware prefetcher. So
// each read prefetches `ahead` floats into L2: the same columns of the rows that are packed next,
// or further columns if rows are long.
constexpr int64_t kMostAhead = 1 << 15, kAheadInRow = 256;

// Packs a block whose columns are adjacent in the source.
template <typename T>
CLOZE_INLINE void PackByColumns(
    const PackArgs& p, int64_t depth, int64_t cols, const float* from, int64_t ahead, float* to) {
  for (int64_t unit = 0; unit < kPackUnits; ++unit, to += p.block_cols) {
    for (int64_t n = 0; n < p.block_cols; n += W) {
      const auto row = [&](int64_t k) {
        if (k >= depth || n >= cols) return VF{};
        const float* at = from + k * p.depth_step + n;
        __builtin_prefetch(at + ahead, 0, 2);
        return n + W <= cols ? Load(at) : LoadPart(at, cols - n);
      };
      if constexpr (sizeof(T) == 2) Store(to + n, PairBf16(row(2 * unit), row(2 * unit + 1)));
      if constexpr (sizeof(T) == 4) Store(to + n, row(unit));
    }
  }
}

// Packs a block whose depth is adjacent in the source.
template <typename T>
CLOZE_INLINE void PackByDepth(
    const PackArgs& p, int64_t depth, int64_t cols, const float* from, int64_t ahead, float* to) {
  for (int64_t n0 = 0; n0 < p.block_cols; n0 += kPackUnits) {
    alignas(64) float rows[kPackUnits * kPackUnits] = {};
    for (int64_t n = 0; n < MinI(kPackUnits, cols - n0); ++n) {
      T* row = reinterpret_cast<T*>(rows + n * kPackUnits);
      const float* at = from + (n0 + n) * p.cols_step;
      __builtin_prefetch(at + ahead, 0, 2);
      __builtin_prefetch(at + ahead + 16, 0, 2);
      Sweep(depth, [&](auto place) { place.Set(row, place(at)); });
    }
    alignas(64) float transposed[kPackUnits * kPackUnits];
    Transpose(kPackUnits, kPackUnits, rows, kPackUnits, transposed, kPackUnits);
    for (int64_t unit = 0; unit < kPackUnits; ++unit) {
      for (int64_t n = 0; n < kPackUnits; n += W)
        Store(to + unit * p.block_cols + n0 + n, Load(transposed + unit * kPackUnits + n));
    }
  }
}

template <typename T>
void Pack(const PackArgs& p) {
  const int64_t all = p.cols_step == 1 ? p.depth * p.depth_step : p.cols * p.cols_step,
                ahead = all <= kMostAhead ? all : kAheadInRow;
  for (int64_t n = 0; n < p.cols; n += p.block_cols) {
    for (int64_t k = 0; k < p.depth; k += p.block_depth) {
      const int64_t depth = MinI(p.block_depth, p.depth - k), cols = MinI(p.block_cols, p.cols - n);
      const float* from = p.from + k * p.depth_step + n * p.cols_step;
      T* block = static_cast<T*>(p.to) + k / p.block_depth * p.depth_stride +
                 n / p.block_cols * p.cols_stride;
      float* to = reinterpret_cast<float*>(block);
      if (p.cols_step == 1) PackByColumns<T>(p, depth, cols, from, ahead, to);
      if (p.cols_step != 1) PackByDepth<T>(p, depth, cols, from, ahead, to);
    }
  }
}

}  // namespace
#endif  // CLOZE_ISA

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_PACK_H_
