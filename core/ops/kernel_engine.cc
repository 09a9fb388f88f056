#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

// Size of the part of a weight gradient's operands that is packed into panels at a time: tokens,
// and columns of the wider operand.
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

// The division of products with a left operand of this type: into as few tiles of at most `rows`
// rows as possible, of nearly equal size in multiples of `unit`, times tiles of `cols` columns.
// Weights are packed in blocks [block, block].
struct Tiling {
  DType type;
  int64_t block, unit, rows, cols;
};
constexpr Tiling kBf16Tiling = {
    DType::kBf16, kProductBlock, kProductBlock, kProductRows, kProductCols};
constexpr Tiling kF32Tiling = {DType::kF32, kF32Block, kF32TileRows, kF32Rows, kF32Cols};

// Calls f(begin, end) for `ranges` ranges of [0, n), all but the last multiples of `unit`.
template <typename F>
void ForRanges(int64_t n, int64_t unit, int64_t ranges, F f) {
  const int64_t units = CeilDiv(n, unit);
  for (int64_t i = 0; i < ranges; ++i)
    f(units * i / ranges * unit, std::min(n, units * (i + 1) / ranges * unit));
}

class KernelEngine : public MatmulEngine {
 public:
  explicit KernelEngine(PackedWeights* packed) : packed_(packed) {}

  bool Takes(const Product& p) const override {
    const Kernels& kernels = GetKernels();
    if (p.src.type == DType::kF32) return kernels.f32_product != nullptr;
    return kernels.product.bf16 != nullptr && p.src.cols % kProductBlock == 0 &&
           p.src.stride % 2 == 0;
  }
  bool TakesGradient(DType type) const override {
    const Kernels& kernels = GetKernels();
    return type == DType::kF32 ? kernels.f32_gradient != nullptr : kernels.gradient != nullptr;
  }
  int64_t GradientBytes(int64_t tokens, int64_t out, int64_t in, DType type) const override {
    const auto [narrow, wide] = std::minmax(out, in);
    const int64_t threads = Threads();
    return threads * int64_t{sizeof(float)} *
           (type == DType::kF32 ? kF32GradientScratch
                                : GradientFloats(tokens, narrow, CeilDiv(wide, threads)));
  }

  void AddProduct(const Product& p) override {
    const Tiling& cut = p.src.type == DType::kBf16 ? kBf16Tiling : kF32Tiling;
    const int64_t depth = RoundUp(p.src.cols, cut.block), block = cut.block * cut.block,
                  size = SizeOf(cut.type), ranges = CeilDiv(p.dst.rows, cut.rows);
    const WeightLayout layout = {.type = cut.type,
        .depth = p.src.cols,
        .cols = p.dst.cols,
        .blocks = {cut.block, cut.block, block, depth / cut.block * block},
        .bytes = RoundUp(p.dst.cols, cut.block) * depth * size};
    const auto* weights =
        static_cast<const char*>(packed_->Get(p.w, p.transposed, 0, layout, [](void*) {}));
    const int64_t share = RoundUp(CeilDiv(p.dst.cols, ThreadsHere()), cut.block),
                  width = ranges == 1 ? std::min(cut.cols, share) : cut.cols;
    ForRanges(p.dst.rows, cut.unit, ranges, [&](int64_t row, int64_t end) {
      ForTiles(p.dst.cols, width, [&](int64_t col, int64_t cols) {
        const Product t = p.Tile(row, end - row, col, cols);
        queue_.push_back(
            {{end - row, cols, t.src.cols, t.src.stride, t.dst.stride, t.src.data,
                 weights + col * depth * size, t.bias, t.dst.data, t.accumulate, nullptr},
                t.src.type, t.dst.type});
      });
    });
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) override {
    if (x.type == DType::kBf16) AddUnitGradient(dy, x, dw);
    if (x.type == DType::kF32) AddF32Gradient(dy, x, dw);
  }

  void Run() override {
    if (queue_.empty()) return;
    OneScratchPerThread();
    ParallelFor(queue_.size(), [&](int64_t i) {
      Task task = queue_[i];
      if (task.src == DType::kF32) return GetKernels().f32_product(task.args);
      task.args.scratch = Scratch(ProductScratch(task.args.rows, task.args.depth));
      GetKernels().product[task.dst](task.args);
    });
    queue_.clear();
  }

 private:
  struct Task {
    ProductArgs args;
    DType src, dst;
  };

  // Each thread computes some of the rows of dw or, if it has more columns, of the columns. All
  // threads pack all of the narrower operand: it takes longer to read what another core has packed.
  void AddUnitGradient(ConstMat dy, ConstMat x, Mat dw) {
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

  void AddF32Gradient(ConstMat dy, ConstMat x, Mat dw) {
    const int64_t across = CeilDiv(dw.cols, kF32GradientCols), threads = ThreadsHere(),
                  tasks = RoundUp(CeilDiv(dw.rows, kF32GradientRows) * across, threads),
                  ranges = CeilDiv(tasks, across);
    std::vector<F32GradientArgs> tiles;
    ForRanges(dw.rows, kF32TileRows, ranges, [&](int64_t row, int64_t end) {
      ForTiles(dw.cols, kF32GradientCols, [&](int64_t col, int64_t cols) {
        tiles.push_back({x.rows, end - row, cols, dy.f32(0) + row, x.f32(0) + col, dy.stride,
            x.stride, static_cast<float*>(dw.data) + row * dw.stride + col, dw.stride, nullptr});
      });
    });
    OneScratchPerThread();
    ParallelFor(tiles.size(), [&](int64_t i) {
      tiles[i].scratch = Scratch(kF32GradientScratch);
      GetKernels().f32_gradient(tiles[i]);
    });
  }

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
  std::vector<Task> queue_;
  std::vector<LargeMemory> scratch_;  // of each thread
};

}  // namespace

std::unique_ptr<MatmulEngine> MakeKernelEngine(PackedWeights* packed) {
  return std::make_unique<KernelEngine>(packed);
}

}  // namespace cloze
