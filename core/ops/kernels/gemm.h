// Small f32 matrix products inside attention. Only for core/ops/kernels/*.cc.
#ifndef CLOZE_CORE_OPS_KERNELS_GEMM_H_
#define CLOZE_CORE_OPS_KERNELS_GEMM_H_

#include "core/ops/kernels/simd.h"

namespace cloze {
namespace {

constexpr int kTileRows = 6;
constexpr int kTileVectors = W == 16 ? 4 : 2;

// c[m, n] (+)= sum over k of a[m * a_row + k * a_col] * b[k * b_row + n]; m < M, n < N vectors.
template <int M, int N>
CLOZE_INLINE void Tile(int64_t depth, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row, float* c, int64_t c_row,
                       bool add) {
  VF sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[i][j] = add ? Load(c + i * c_row + j * W) : VF{};
  }
  for (int64_t k = 0; k < depth; ++k, a += a_col, b += b_row) {
    VF right[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) right[j] = Load(b + j * W);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const VF left = Splat(a[i * a_row]);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) Store(c + i * c_row + j * W, sum[i][j]);
  }
}

struct GemmArgs {
  int64_t rows, cols, depth;  // cols a multiple of W
  const float* a;
  int64_t a_row, a_col;  // element (m, k) at a[m * a_row + k * a_col]
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool add;
};

template <int N>
void GemmColumns(const GemmArgs& g, int64_t n) {
  int64_t m = 0;
  const auto tile = [&]<int M>() {
    Tile<M, N>(g.depth, g.a + m * g.a_row, g.a_row, g.a_col, g.b + n, g.b_row, g.c + m * g.c_row + n, g.c_row, g.add);
    m += M;
  };
  while (g.rows - m >= kTileRows) tile.template operator()<kTileRows>();
  switch (g.rows - m) {
    case 5: return tile.template operator()<5>();
    case 4: return tile.template operator()<4>();
    case 3: return tile.template operator()<3>();
    case 2: return tile.template operator()<2>();
    case 1: return tile.template operator()<1>();
  }
}

// c (+)= a b on one thread.
inline void Gemm(const GemmArgs& g) {
  int64_t n = 0;
  for (; n + kTileVectors * W <= g.cols; n += kTileVectors * W) GemmColumns<kTileVectors>(g, n);
  switch ((g.cols - n) / W) {
    case 3: return GemmColumns<3>(g, n);
    case 2: return GemmColumns<2>(g, n);
    case 1: return GemmColumns<1>(g, n);
  }
}

}  // namespace
}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_GEMM_H_
