#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

// Parts of the operands of a weight gradient that are in panels at a time: tokens, and columns of
// the operand with more columns.
constexpr int64_t kTokens = 1024, kCols = 256;
constexpr int64_t kGradientRows = 128, kGradientCols = 256;  // of a tile of the gradient

// Returns the floats of the panels of `cols` columns.
int64_t PanelFloats(int64_t tokens, int64_t cols) {
  return RoundUp(tokens, kPanelTokens) * RoundUp(cols, kPanelCols) / 2;
}

// Returns the floats of panels that one thread needs for a gradient.
int64_t GradientFloats(int64_t tokens, int64_t narrow, int64_t share) {
  tokens = std::min(tokens, kTokens);
  return PanelFloats(tokens, narrow) + PanelFloats(tokens, std::min(share, kCols));
}

// Packs an operand.
void LayOut(ConstMat m, bool transposed, float* to) {
  GetKernels().gradient_panels(
      {m.rows, m.cols, m.stride, m.data, transposed, to, PanelFloats(m.rows, kPanelCols)});
}

// dw += left^T right over `tokens` tokens, in tiles that stay in L2.
void Multiply(int64_t tokens, const float* left, const float* right, Mat dw) {
  ForTiles(dw.rows, kGradientRows, [&](int64_t row, int64_t rows) {
    ForTiles(dw.cols, kGradientCols, [&](int64_t col, int64_t cols) {
      const Mat tile = Columns(Rows(dw, row, rows), col, cols);
      GetKernels().gradient({CeilDiv(tokens, kPanelTokens), rows, cols,
          left + PanelFloats(tokens, row), right + PanelFloats(tokens, col),
          PanelFloats(tokens, kPanelCols), static_cast<float*>(tile.data), tile.stride});
    });
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

  // Each thread computes some of the rows of dw or, if it has more columns, of the columns. All
  // threads pack all of the narrower operand: it takes longer to read what another core has packed.
  void AddGradient(ConstMat dy, ConstMat x, Mat dw) override {
    const bool by_rows = dw.rows >= dw.cols;
    const ConstMat narrow = by_rows ? x : dy, wide = by_rows ? dy : x;
    const int64_t share = RoundUp(CeilDiv(wide.cols, ThreadsHere()), kPanelCols);
    OneScratchPerThread();
    ParallelChunks(wide.cols, share, [&](int64_t begin, int64_t end) {
      float* of_narrow = Scratch(GradientFloats(x.rows, narrow.cols, share));
      ForTiles(x.rows, kTokens, [&](int64_t token, int64_t tokens) {
        float* of_wide = of_narrow + PanelFloats(tokens, narrow.cols);
        LayOut(Rows(narrow, token, tokens), !by_rows, of_narrow);
        ForTiles(end - begin, kCols, [&](int64_t col, int64_t cols) {
          col += begin;
          LayOut(Columns(Rows(wide, token, tokens), col, cols), by_rows, of_wide);
          if (by_rows) Multiply(tokens, of_wide, of_narrow, Rows(dw, col, cols));
          if (!by_rows) Multiply(tokens, of_narrow, of_wide, Columns(dw, col, cols));
        });
      });
    });
  }

  void Run() override {
    if (queue_.empty()) return;
    OneScratchPerThread();
    ParallelFor(queue_.size(), [&](int64_t i) {
      ProductArgs mine = queue_[i].first;
      mine.scratch = Scratch(ProductScratch(mine.rows, mine.depth));
      GetKernels().product[queue_[i].second](mine);
    });
    queue_.clear();
  }

 private:
  // Must be called before Scratch, which runs in parallel.
  void OneScratchPerThread() {
    if (scratch_.size() < static_cast<size_t>(Threads())) scratch_.resize(Threads());
  }
  // Returns at least `floats` floats of this thread.
  float* Scratch(int64_t floats) {
    LargeMemory& memory = scratch_[ThreadIndex()];
    Grow(floats * int64_t{sizeof(float)}, memory);
    return memory.as<float>().data();
  }

  PackedWeights* packed_;
  std::vector<std::pair<ProductArgs, DType>> queue_;  // with the type of the result
  std::vector<LargeMemory> scratch_;                  // of each thread
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
  const auto [narrow, wide] = std::minmax(out, in);
  const int64_t threads = Threads();
  return threads * GradientFloats(tokens, narrow, CeilDiv(wide, threads)) * int64_t{sizeof(float)};
}

}  // namespace cloze
