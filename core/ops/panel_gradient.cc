#include "core/ops/panel_gradient.h"

#include <algorithm>

#include "core/base/threads.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/tiles.h"

namespace cloze {
namespace {

// Panels hold at most so much of the operands at a time.
constexpr int64_t kMostTokens = 1024, kMostRows = 4096;
// Of a piece of work for a thread.
constexpr int64_t kTokens = 128, kRows = 128, kCols = 256;

int64_t Ceil(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Floats of a panel over all tokens.
int64_t PanelFloats(int64_t tokens) {
  return Ceil(tokens, kPanelTokens) * kPanelTokens * kPanelCols / 2;
}

// Both operands, where they are to be in panels. Without tokens there is no work.
struct Operand {
  ConstMat from;
  bool transposed;
  float* to;
};

void LayOut(std::initializer_list<Operand> operands, int64_t panel) {
  const int64_t pieces = Ceil(operands.begin()->from.rows, kTokens);
  const auto count = static_cast<int64_t>(operands.size());
  ParallelFor(pieces * count, [&](int64_t i) {
    const Operand& o = operands.begin()[i % count];
    const int64_t token = i / count * kTokens;
    const ConstMat rows = Rows(o.from, token, std::min(kTokens, o.from.rows - token));
    GetKernels().gradient_panels({rows.rows, rows.cols, rows.stride, rows.data, o.transposed,
        o.to + PanelFloats(token), panel});
  });
}

void Multiply(int64_t tokens, const float* left, const float* right, Mat dw) {
  const int64_t panel = PanelFloats(tokens), height = Piece(dw.rows, kRows),
                width = Piece(dw.cols, kCols);
  const int64_t down = Ceil(dw.rows, height), across = Ceil(dw.cols, width);
  ParallelFor(down * across, [&](int64_t i) {
    const int64_t row = i / across * height, col = i % across * width;
    const Mat tile = Columns(
        Rows(dw, row, std::min(height, dw.rows - row)), col, std::min(width, dw.cols - col));
    GetKernels().gradient(
        {Ceil(tokens, kPanelTokens), tile.rows, tile.cols, left + row / kPanelCols * panel,
            right + col / kPanelCols * panel, panel, static_cast<float*>(tile.data), tile.stride});
  });
}

}  // namespace

bool PanelGradient::Runs(DType type) {
  return type == DType::kBf16 && GetKernels().gradient != nullptr;
}

int64_t PanelGradient::Bytes(int64_t tokens, int64_t out, int64_t in, DType type) {
  if (!Runs(type)) return 0;
  const int64_t panels = Ceil(std::min(out, kMostRows), kPanelCols) + Ceil(in, kPanelCols);
  return panels * PanelFloats(std::min(tokens, kMostTokens)) * int64_t{sizeof(float)};
}

void PanelGradient::Add(ConstMat dy, ConstMat x, Mat dw) {
  if (const int64_t bytes = Bytes(x.rows, dw.rows, dw.cols, x.type); bytes > panels_.bytes())
    panels_ = LargeMemory(bytes);
  ForTiles(x.rows, kMostTokens, [&](int64_t token, int64_t tokens) {
    const int64_t panel = PanelFloats(tokens);
    float* right = panels_.as<float>().data();
    float* left = right + Ceil(dw.cols, kPanelCols) * panel;
    ForTiles(dw.rows, kMostRows, [&](int64_t row, int64_t rows) {
      const Operand dy_rows = {Columns(Rows(dy, token, tokens), row, rows), true, left};
      if (row == 0) LayOut({{Rows(x, token, tokens), false, right}, dy_rows}, panel);
      if (row != 0) LayOut({dy_rows}, panel);
      Multiply(tokens, left, right, Rows(dw, row, rows));
    });
  });
}

}  // namespace cloze
