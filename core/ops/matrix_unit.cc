#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

// Parts of the operands that are in panels at a time.
constexpr int64_t kMostTokens = 1024, kMostRows = 4096;
// Sizes of a task.
constexpr int64_t kTokens = 128, kRows = 128, kCols = 256;

// Returns the floats of a panel over all tokens.
int64_t PanelFloats(int64_t tokens) { return RoundUp(tokens, kPanelTokens) * kPanelCols / 2; }

// Packs operands of the same number of tokens.
void LayOut(std::initializer_list<PanelArgs> operands) {
  const int64_t pieces = CeilDiv(operands.begin()->tokens, kTokens);
  ParallelFor(pieces * operands.size(), [&](int64_t i) {
    PanelArgs o = operands.begin()[i % operands.size()];
    const int64_t token = i / operands.size() * kTokens;
    o.tokens = std::min(kTokens, o.tokens - token);
    o.from = static_cast<const Bf16*>(o.from) + token * o.stride;
    o.to += PanelFloats(token);
    GetKernels().gradient_panels(o);
  });
}

void Multiply(int64_t tokens, const float* left, const float* right, Mat dw) {
  const int64_t panel = PanelFloats(tokens), height = PieceSize(dw.rows, kRows),
                width = PieceSize(dw.cols, kCols);
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

class UnitEngine : public MatmulEngine {
 public:
  explicit UnitEngine(PackedWeights* packed) : packed_(packed) {}

  void AddProduct(const Product& p) override {
    const int64_t depth = p.src.cols, block = kProductBlock * kProductBlock,
                  size = SizeOf(DType::kBf16);
    const WeightLayout layout = {.type = DType::kBf16,
        .depth = depth,
        .cols = p.dst.cols,
        .blocks = {kProductBlock, kProductBlock, block, depth / kProductBlock * block},
        .bytes = RoundUp(p.dst.cols, kProductBlock) * depth * size};
    const auto* weights = static_cast<const char*>(packed_->Get(p, 0, layout, [](void*) {}));
    // The fewest pieces of whole blocks, of nearly equal size.
    const int64_t blocks = CeilDiv(p.dst.rows, kProductBlock),
                  pieces = CeilDiv(p.dst.rows, kProductRows);
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t row = blocks * i / pieces * kProductBlock,
                    end = std::min(p.dst.rows, blocks * (i + 1) / pieces * kProductBlock);
      ForTiles(p.dst.cols, kProductCols, [&](int64_t col, int64_t cols) {
        const Product t = p.Part(row, end - row, col, cols);
        queue_.push_back(
            {{end - row, cols, depth, t.src.stride, t.dst.stride, t.src.data,
                 weights + col * depth * size, t.bias, t.dst.data, t.accumulate, nullptr},
                t.dst.type});
      });
    }
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) override {
    Grow(UnitGradientBytes(x.rows, dw.rows, dw.cols, x.type), panels_);
    ForTiles(x.rows, kMostTokens, [&](int64_t token, int64_t tokens) {
      const int64_t panel = PanelFloats(tokens);
      float* right = panels_.as<float>().data();
      float* left = right + CeilDiv(dw.cols, kPanelCols) * panel;
      const auto panels = [&](ConstMat m, int64_t col, int64_t cols, bool transposed, float* to) {
        const ConstMat part = Columns(Rows(m, token, tokens), col, cols);
        return PanelArgs{tokens, cols, m.stride, part.data, transposed, to, panel};
      };
      ForTiles(dw.rows, kMostRows, [&](int64_t row, int64_t rows) {
        const PanelArgs of_dy = panels(dy, row, rows, true, left);
        if (row == 0) LayOut({panels(x, 0, dw.cols, false, right), of_dy});
        if (row != 0) LayOut({of_dy});
        Multiply(tokens, left, right, Rows(dw, row, rows));
      });
    });
  }

  void Run() override {
    if (queue_.empty()) return;
    int64_t floats = 0;
    for (const auto& [p, type] : queue_) floats = std::max(floats, ProductScratch(p.rows, p.depth));
    if (scratch_.size() < static_cast<size_t>(Threads())) scratch_.resize(Threads());
    for (LargeMemory& scratch : scratch_) Grow(floats * int64_t{sizeof(float)}, scratch);
    ParallelFor(queue_.size(), [&](int64_t i) {
      ProductArgs mine = queue_[i].first;
      mine.scratch = scratch_[ThreadIndex()].as<float>().data();
      GetKernels().product[queue_[i].second](mine);
    });
    queue_.clear();
  }

 private:
  PackedWeights* packed_;
  std::vector<std::pair<ProductArgs, DType>> queue_;  // with the type of the result
  std::vector<LargeMemory> scratch_;                  // of each thread
  LargeMemory panels_;                                // of AddGradient
};

}  // namespace

std::unique_ptr<MatmulEngine> MakeUnitEngine(PackedWeights* packed) {
  return std::make_unique<UnitEngine>(packed);
}

bool UnitMultiplies(ConstMat src) {
  return src.type == DType::kBf16 && GetKernels().product.bf16 != nullptr &&
         src.cols % kProductBlock == 0 && src.stride % 2 == 0;
}

bool UnitHasGradient(DType type) {
  return type == DType::kBf16 && GetKernels().gradient != nullptr;
}

int64_t UnitGradientBytes(int64_t tokens, int64_t out, int64_t in, DType type) {
  if (!UnitHasGradient(type)) return 0;
  const int64_t panels = CeilDiv(std::min(out, kMostRows), kPanelCols) + CeilDiv(in, kPanelCols);
  return panels * PanelFloats(std::min(tokens, kMostTokens)) * int64_t{sizeof(float)};
}

}  // namespace cloze
