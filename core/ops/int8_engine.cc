#include "core/ops/activation.h"
#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

// Rows of a task that has all columns: its quantized rows stay in the cache.
constexpr int64_t kMaxTaskRows = 96, kMinTaskRows = 24;

// A packed weight: the panels, then the scales and the sums of the columns.
struct Packed {
  int8_t* q;
  float* scale;
  int32_t* sum;

  Packed(void* at, int64_t depth, int64_t cols)
      : q(static_cast<int8_t*>(at)), scale(reinterpret_cast<float*>(q + depth * cols)),
        sum(reinterpret_cast<int32_t*>(scale + cols)) {}
  static int64_t Bytes(int64_t depth, int64_t cols) { return (depth + 8) * cols; }
};

void PackWeight(ConstMat w, int64_t depth, const Packed& to) {
  const Op op("pack weights", [&] { return MemoryCost({w}); });
  ParallelFor(CeilDiv(w.rows, kInt8Cols), [&](int64_t i) {
    const int64_t col = i * kInt8Cols;
    GetKernels().pack_int8({w.cols, depth, std::min(kInt8Cols, w.rows - col), w.stride, w.f32(col),
        to.q + col * depth, to.scale + col, to.sum + col});
  });
}

// Places the quantized form of `rows` rows in `memory`.
Int8Rows RowsIn(int64_t rows, int64_t depth, LargeMemory& memory) {
  Grow(RoundUp(rows, kInt8RowBlock) * (depth + 8), memory);
  auto* const q = memory.as<uint8_t>().data();
  auto* const scale = reinterpret_cast<float*>(q + rows * depth);
  return {rows, depth, q, scale, reinterpret_cast<int32_t*>(scale + rows)};
}

void Quantize(ConstMat x, const Int8Rows& to) {
  GetKernels().quantize_rows[x.type]({x.cols, x.stride, x.data, to});
}

// Returns the packed copy of w [out, in]; packs `values` into it if it is stale.
Packed PackedOf(PackedWeights& packed, const Weight& w, ConstMat values, bool pin = false) {
  const int64_t depth = RoundUp(w.w.cols, kInt8Depth), cols = RoundUp(w.w.rows, kInt8Cols);
  const WeightLayout layout = {
      .type = DType::kS8, .depth = depth, .cols = cols, .bytes = Packed::Bytes(depth, cols)};
  const auto pack = [&](void* to) { PackWeight(values, depth, Packed(to, depth, cols)); };
  return Packed(const_cast<void*>(packed.Get(w, true, 0, layout, pack, pin)), depth, cols);
}

// Computes act(a product), columns from `col` on.
void MultiplyColumns(const Packed& w, const Int8Rows& x, const Product& tile, int64_t col,
    const ActivationKind* act) {
  GetKernels().int8_product[tile.dst.type]({tile.dst.cols, tile.dst.stride, x, w.q + col * x.depth,
      w.scale + col, w.sum + col, tile.bias, tile.dst.data, act});
}

// Computes act(a product) whose quantized rows are in `memory`.
void MultiplyRows(
    const Packed& w, const Product& p, const ActivationKind* act, LargeMemory& memory) {
  const Int8Rows rows = RowsIn(p.src.rows, RoundUp(p.src.cols, kInt8Depth), memory);
  Quantize(p.src, rows);
  MultiplyColumns(w, rows, p, 0, act);
}

// Calls f(row, rows) for tasks of whole blocks of rows; returns false if n are not enough for all
// threads.
bool ForRowTasks(int64_t n, absl::FunctionRef<void(int64_t row, int64_t rows)> f) {
  const int64_t threads = Threads();
  if (n < kMinTaskRows * threads) return false;
  const int64_t blocks = CeilDiv(n, kInt8RowBlock),
                tasks = std::min(blocks, RoundUp(CeilDiv(n, kMaxTaskRows), threads));
  ParallelFor(tasks, [&](int64_t i) {
    const int64_t row = blocks * i / tasks * kInt8RowBlock,
                  end = std::min(n, blocks * (i + 1) / tasks * kInt8RowBlock);
    f(row, end - row);
  });
  return true;
}

}  // namespace

int64_t Int8Engine::PackedBytes(const Product& p) const {
  return Packed::Bytes(RoundUp(p.w.w.cols, kInt8Depth), RoundUp(p.w.w.rows, kInt8Cols));
}

void Int8Engine::Pin(const Weight& w, ConstMat values) { PackedOf(*packed_, w, values, true); }

// If there are rows enough for all threads, a task quantizes some and multiplies them with the
// whole weight; else all rows are quantized first, and tasks are ranges of columns.
void Int8Engine::Multiply(const Product& p, const ActivationKind* act) {
  const int64_t n = p.src.rows, threads = Threads();
  CLOZE_CHECK(p.src.cols <= kInt8MaxDepth && !p.accumulate);
  if (n == 0) return;
  const Packed w = PackedOf(*packed_, p.w, p.w.w);
  scratch_.resize(std::max<size_t>(scratch_.size(), threads));
  const bool many = ForRowTasks(n, [&](int64_t row, int64_t rows) {
    MultiplyRows(w, p.Tile(row, rows, 0, p.dst.cols), act, scratch_[ThreadIndex()].quantized);
  });
  if (many) return;
  const int64_t depth = RoundUp(p.src.cols, kInt8Depth), few = CeilDiv(n, threads);
  const Int8Rows all = RowsIn(n, depth, scratch_[0].quantized);
  ParallelChunks(n, few, [&](int64_t begin, int64_t end) {
    Quantize(Rows(p.src, begin, end - begin),
        {end - begin, depth, all.q + begin * depth, all.scale + begin, all.zero + begin});
  });
  const int64_t width = RoundUp(CeilDiv(p.dst.cols, threads), kInt8Cols);
  ParallelChunks(p.dst.cols, width, [&](int64_t begin, int64_t end) {
    MultiplyColumns(w, all, p.Tile(0, n, begin, end - begin), begin, act);
  });
}

void Int8Engine::Mlp(
    ConstMat x, const WeightAndBias& up, ActivationKind act, const WeightAndBias& down, Mat y) {
  const int64_t inner = up.w.w.rows;
  const Packed first = PackedOf(*packed_, up.w, up.w.w),
               second = PackedOf(*packed_, down.w, down.w.w);
  scratch_.resize(std::max<size_t>(scratch_.size(), Threads()));
  const auto between = [&](int64_t rows, Scratch& scratch) {
    Grow(rows * inner * SizeOf(y.type), scratch.between);
    return Mat{scratch.between.get(), rows, inner, inner, y.type};
  };
  const bool many = ForRowTasks(y.rows, [&](int64_t row, int64_t rows) {
    Scratch& scratch = scratch_[ThreadIndex()];
    const Mat u = between(rows, scratch);
    MultiplyRows(
        first, {Rows(x, row, rows), up.w, true, up.bias, u, false}, &act, scratch.quantized);
    MultiplyRows(second, {u, down.w, true, down.bias, Rows(y, row, rows), false}, nullptr,
        scratch.quantized);
  });
  if (many) return;
  const Mat u = between(y.rows, scratch_[0]);
  Multiply({x, up.w, true, up.bias, u, false}, &act);
  Multiply({u, down.w, true, down.bias, y, false}, nullptr);
}

}  // namespace cloze
