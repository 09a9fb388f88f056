#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

// Rows of a task that has all columns: its quantized rows stay in the cache.
constexpr int64_t kMostTaskRows = 96, kLeastTaskRows = 24;

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
  const Op op("pack weights", [&] { return Traffic({w}); });
  ParallelFor(CeilDiv(w.rows, kInt8Cols), [&](int64_t i) {
    const int64_t col = i * kInt8Cols;
    GetKernels().pack_int8({w.cols, depth, std::min(kInt8Cols, w.rows - col), w.stride, w.f32(col),
        to.q + col * depth, to.scale + col, to.sum + col});
  });
}

// Places the quantized form of `rows` rows in `memory`.
Int8Rows RowsIn(int64_t rows, int64_t depth, LargeMemory& memory) {
  Grow(rows * (depth + 8), memory);
  auto* const q = memory.as<uint8_t>().data();
  auto* const scale = reinterpret_cast<float*>(q + rows * depth);
  return {rows, depth, q, scale, reinterpret_cast<int32_t*>(scale + rows)};
}

void Quantize(ConstMat x, const Int8Rows& to) {
  GetKernels().quantize_rows[x.type]({x.cols, x.stride, x.data, to});
}

}  // namespace

void* Int8Engine::Pack(const Weight& w, ConstMat values) {
  const int64_t depth = RoundUp(w.w.cols, kInt8Depth), cols = RoundUp(w.w.rows, kInt8Cols);
  const WeightLayout layout = {
      .type = DType::kS8, .depth = depth, .cols = cols, .bytes = Packed::Bytes(depth, cols)};
  return const_cast<void*>(packed_->Get({{}, w, true, nullptr, {}, false}, 0, layout,
      [&](void* to) { PackWeight(values, depth, Packed(to, depth, cols)); }));
}

// If there are rows enough for all threads, a task quantizes some and multiplies them with the
// whole weight; else all rows are quantized first, and tasks are ranges of columns.
void Int8Engine::Multiply(const Product& p) {
  const int64_t n = p.src.rows, depth = RoundUp(p.src.cols, kInt8Depth), threads = Threads();
  CLOZE_CHECK(p.src.cols <= kInt8MostDepth && p.transposed && !p.accumulate);
  if (n == 0) return;
  const Packed w(Pack(p.w, p.w.w), depth, RoundUp(p.dst.cols, kInt8Cols));
  if (scratch_.size() < static_cast<size_t>(threads)) scratch_.resize(threads);
  const auto multiply = [&](const Int8Rows& rows, const Product& part, int64_t col) {
    GetKernels().int8_product[part.dst.type]({part.dst.cols, part.dst.stride, rows,
        w.q + col * depth, w.scale + col, w.sum + col, part.bias, part.dst.data});
  };
  if (n >= kLeastTaskRows * threads) {
    const int64_t tasks = RoundUp(CeilDiv(n, kMostTaskRows), threads);
    for (LargeMemory& scratch : scratch_) RowsIn(CeilDiv(n, tasks), depth, scratch);
    return ParallelFor(tasks, [&](int64_t i) {
      const int64_t row = n * i / tasks, count = n * (i + 1) / tasks - row;
      const Int8Rows rows = RowsIn(count, depth, scratch_[ThreadIndex()]);
      const Product part = p.Part(row, count, 0, p.dst.cols);
      Quantize(part.src, rows);
      multiply(rows, part, 0);
    });
  }
  const Int8Rows all = RowsIn(n, depth, scratch_[0]);
  const int64_t few = CeilDiv(n, threads);
  ParallelChunks(n, few, [&](int64_t begin, int64_t end) {
    Quantize(Rows(p.src, begin, end - begin),
        {end - begin, depth, all.q + begin * depth, all.scale + begin, all.zero + begin});
  });
  const int64_t width = RoundUp(CeilDiv(p.dst.cols, threads), kInt8Cols);
  ParallelChunks(p.dst.cols, width,
      [&](int64_t begin, int64_t end) { multiply(all, p.Part(0, n, begin, end - begin), begin); });
}

}  // namespace cloze
