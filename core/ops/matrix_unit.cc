#include "core/ops/matrix_unit.h"

#include <algorithm>

#include "core/base/number.h"
#include "core/base/threads.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/tiles.h"

namespace cloze {
namespace {

// Parts of the operands that are in panels at a time.
constexpr int64_t kMostTokens = 1024, kMostRows = 4096;
// Sizes of a task.
constexpr int64_t kTokens = 128, kRows = 128, kCols = 256;

// Returns the floats of a panel over all tokens.
int64_t PanelFloats(int64_t tokens) { return RoundUp(tokens, kPanelTokens) * kPanelCols / 2; }

// An operand and the panels it is packed into.
struct Operand {
  ConstMat from;
  bool transposed;
  float* to;
};

// Packs operands of the same number of rows.
void LayOut(std::initializer_list<Operand> operands, int64_t panel) {
  const int64_t pieces = CeilDiv(operands.begin()->from.rows, kTokens);
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
  const int64_t down = CeilDiv(dw.rows, height), across = CeilDiv(dw.cols, width);
  ParallelFor(down * across, [&](int64_t i) {
    const int64_t row = i / across * height, col = i % across * width;
    const Mat tile = Columns(
        Rows(dw, row, std::min(height, dw.rows - row)), col, std::min(width, dw.cols - col));
    GetKernels().gradient(
        {CeilDiv(tokens, kPanelTokens), tile.rows, tile.cols, left + row / kPanelCols * panel,
            right + col / kPanelCols * panel, panel, static_cast<float*>(tile.data), tile.stride});
  });
}

}  // namespace

bool MatrixUnit::Multiplies(ConstMat src) {
  return src.type == DType::kBf16 && GetKernels().product.bf16 != nullptr &&
         src.cols % kProductBlock == 0 && src.stride % 2 == 0;
}

void MatrixUnit::AddProduct(
    ConstMat src, const Weight& w, bool transposed, const float* bias, Mat dst, bool accumulate) {
  const int64_t block = kProductBlock * kProductBlock;
  const WeightLayout layout = {.type = DType::kBf16,
      .depth = src.cols,
      .cols = dst.cols,
      .block_depth = kProductBlock,
      .block_cols = kProductBlock,
      .depth_stride = block,
      .cols_stride = src.cols / kProductBlock * block,
      .bytes = RoundUp(dst.cols, kProductBlock) * src.cols * SizeOf(DType::kBf16)};
  const auto* weights =
      static_cast<const char*>(packed_->Get(w, transposed, 0, layout, [](void*) {}));
  ForPieces(dst.rows, kProductRows, kProductBlock, [&](int64_t row, int64_t rows) {
    ForTiles(dst.cols, kProductCols, [&](int64_t col, int64_t cols) {
      const Mat to = Columns(Rows(dst, row, rows), col, cols);
      queue_.push_back({{rows, cols, src.cols, src.stride, dst.stride, Rows(src, row, rows).data,
                            weights + col * src.cols * SizeOf(DType::kBf16),
                            bias == nullptr ? nullptr : bias + col, to.data, accumulate, nullptr},
          dst.type});
    });
  });
}

void MatrixUnit::Run() {
  if (queue_.empty()) return;
  int64_t floats = 0;
  for (const auto& [p, type] : queue_) floats = std::max(floats, ProductScratch(p.rows, p.depth));
  const int64_t bytes = floats * int64_t{sizeof(float)};
  if (scratch_.size() < static_cast<size_t>(Threads())) scratch_.resize(Threads());
  for (LargeMemory& scratch : scratch_) {
    if (bytes > scratch.bytes()) scratch = LargeMemory(bytes);
  }
  ParallelFor(queue_.size(), [&](int64_t i) {
    ProductArgs mine = queue_[i].first;
    mine.scratch = scratch_[ThreadIndex()].as<float>().data();
    GetKernels().product[queue_[i].second](mine);
  });
  queue_.clear();
}

bool MatrixUnit::HasGradient(DType type) {
  return type == DType::kBf16 && GetKernels().gradient != nullptr;
}

int64_t MatrixUnit::GradientBytes(int64_t tokens, int64_t out, int64_t in, DType type) {
  if (!HasGradient(type)) return 0;
  const int64_t panels = CeilDiv(std::min(out, kMostRows), kPanelCols) + CeilDiv(in, kPanelCols);
  return panels * PanelFloats(std::min(tokens, kMostTokens)) * int64_t{sizeof(float)};
}

void MatrixUnit::AddGradient(ConstMat dy, ConstMat x, Mat dw) {
  if (const int64_t bytes = GradientBytes(x.rows, dw.rows, dw.cols, x.type);
      bytes > panels_.bytes())
    panels_ = LargeMemory(bytes);
  ForTiles(x.rows, kMostTokens, [&](int64_t token, int64_t tokens) {
    const int64_t panel = PanelFloats(tokens);
    float* right = panels_.as<float>().data();
    float* left = right + CeilDiv(dw.cols, kPanelCols) * panel;
    ForTiles(dw.rows, kMostRows, [&](int64_t row, int64_t rows) {
      const Operand dy_rows = {Columns(Rows(dy, token, tokens), row, rows), true, left};
      if (row == 0) LayOut({{Rows(x, token, tokens), false, right}, dy_rows}, panel);
      if (row != 0) LayOut({dy_rows}, panel);
      Multiply(tokens, left, right, Rows(dw, row, rows));
    });
  });
}

}  // namespace cloze
