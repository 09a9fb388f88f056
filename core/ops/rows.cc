#include "core/ops/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/ops/op.h"

namespace cloze {
namespace {

void CopyRow(ConstMat from, int64_t row, Mat to, int64_t to_row) {
  std::memcpy(to.at(to_row, 0), from.at(row, 0), from.cols * SizeOf(from.type));
}

float ElementOf(ConstMat m, int64_t r, int64_t c) {
  return m.type == DType::kF32 ? m.f32(r)[c] : Bf16ToFloat(m.row<Bf16>(r)[c]);
}

}  // namespace

void Axpby(float a, ConstMat x, float b, Mat y) {
  CLOZE_CHECK(x.rows == y.rows && x.cols == y.cols && x.type == y.type);
  ForRows("axpby", {x, y}, x.rows,
      [&](int64_t r) { GetKernels().axpby[x.type](x.cols, a, x.at(r, 0), b, y.at(r, 0)); });
}

void Convert(ConstMat src, Mat dst) {
  CLOZE_CHECK(src.rows == dst.rows && src.cols == dst.cols);
  ForRows("convert", {src, dst}, src.rows, [&](int64_t r) {
    GetKernels().convert[src.type](src.cols, src.at(r, 0), dst.type == DType::kBf16, dst.at(r, 0));
  });
}

void AddColumnSums(ConstMat x, Arena& arena, float* sum) {
  if (sum == nullptr) return;
  const Op op("column sums", [&] { return MemoryCost({x}); });
  ReduceRows(x.rows, x.cols, arena, sum, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().column_sum[x.type](end - begin, x.cols, x.at(begin, 0), x.stride, partial);
  });
}

void GatherRows(ConstMat x, absl::Span<const int32_t> rows, Mat y) {
  CLOZE_CHECK(x.cols == y.cols && x.type == y.type && y.rows >= static_cast<int64_t>(rows.size()));
  ForRows("gather", {y, y}, rows.size(), [&](int64_t i) { CopyRow(x, rows[i], y, i); });
  ZeroRowsFrom(y, rows.size());
}

void ScatterRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx) {
  CLOZE_CHECK(dx.cols == dy.cols && dx.type == dy.type);
  ZeroRowsFrom(dx, 0);
  ForRows("scatter", {dy, dx}, rows.size(), [&](int64_t i) { CopyRow(dy, i, dx, rows[i]); });
}

void KeepRows(ConstMat x, absl::Span<const int32_t> rows, Mat cache) {
  CLOZE_CHECK(x.cols == cache.cols && x.type == cache.type && x.rows >= std::ssize(rows));
  const ConstMat kept = Rows(x, 0, std::ssize(rows));
  ForRows("keep keys and values", {kept, kept}, kept.rows,
      [&](int64_t i) { CopyRow(x, i, cache, rows[i]); });
}

void AverageRows(ConstMat x, absl::Span<const RowRange> ranges, Arena& arena, Mat y) {
  CLOZE_CHECK(x.cols == y.cols && x.type == y.type);
  const Arena::Mark mark = arena.mark();
  const Mat sums = arena.New(ranges.size(), x.cols, DType::kF32);
  int32_t* order = arena.NewArray<int32_t>(x.rows);
  const Op op("average rows", [&] { return MemoryCost({x, y}); });
  if (op.dry()) return arena.Rewind(mark);
  std::iota(order, order + x.rows, 0);
  ParallelFor(ranges.size(), [&](int64_t i) {
    const int64_t count = ranges[i].end - ranges[i].begin;
    float* sum = sums.f32(i);
    GetKernels().sum_rows[x.type](count, x.cols, x.data, order + ranges[i].begin, sum, false);
    GetKernels().axpby.f32(x.cols, 1.0f / static_cast<float>(count), sum, 0, sum);
    GetKernels().convert.f32(x.cols, sum, y.type == DType::kBf16, y.at(i, 0));
  });
  ZeroRowsFrom(y, ranges.size());
  arena.Rewind(mark);
}

void AverageRowsBackward(ConstMat dy, absl::Span<const RowRange> ranges, Mat dx) {
  CLOZE_CHECK(dx.cols == dy.cols && dx.type == dy.type);
  ZeroRowsFrom(dx, 0);
  ForRows("average rows backward", {dy, dx}, ranges.size(), [&](int64_t i) {
    const float share = 1.0f / static_cast<float>(ranges[i].end - ranges[i].begin);
    for (int32_t r = ranges[i].begin; r < ranges[i].end; ++r)
      GetKernels().axpby[dy.type](dy.cols, share, dy.at(i, 0), 0, dx.at(r, 0));
  });
}

void MaxRows(ConstMat x, absl::Span<const RowRange> ranges, Mat y, int32_t* at) {
  CLOZE_CHECK(x.cols == y.cols && x.type == y.type);
  const int64_t cols = x.cols;
  ForRows("max rows", {x, y}, ranges.size(), [&](int64_t i) {
    int32_t* const rows = at + i * cols;
    std::fill_n(rows, cols, ranges[i].begin);
    for (int32_t r = ranges[i].begin + 1; r < ranges[i].end; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        if (ElementOf(x, r, c) > ElementOf(x, rows[c], c)) rows[c] = r;
    }
    for (int64_t c = 0; c < cols; ++c) std::memcpy(y.at(i, c), x.at(rows[c], c), SizeOf(x.type));
  });
  ZeroRowsFrom(y, ranges.size());
}

void MaxRowsBackward(ConstMat dy, const int32_t* at, int64_t count, Mat dx) {
  CLOZE_CHECK(dx.cols == dy.cols && dx.type == dy.type);
  ZeroRowsFrom(dx, 0);
  ForRows("max rows backward", {dy, dx}, count, [&](int64_t i) {
    for (int64_t c = 0; c < dy.cols; ++c)
      std::memcpy(dx.at(at[i * dy.cols + c], c), dy.at(i, c), SizeOf(dy.type));
  });
}

void ZeroRowsFrom(Mat m, int64_t begin) {
  const Op op("zero", [&] { return MemoryCost({Rows(m, begin, m.rows - begin)}); });
  if (op.dry()) return;
  for (int64_t r = begin; r < m.rows; ++r) std::memset(m.at(r, 0), 0, m.cols * SizeOf(m.type));
}

RowCoordinates GatherCoordinates(
    const RowCoordinates& all, absl::Span<const int32_t> rows, int64_t padded, Arena& arena) {
  uint64_t* example = arena.NewArray<uint64_t>(padded);
  int32_t* position = arena.NewArray<int32_t>(padded);
  const Op op("gather coordinates", [&] { return OpCost{.bytes = 24.0 * padded}; });
  if (op.dry()) return {example, position};
  const int64_t count = rows.size();
  for (int64_t i = 0; i < padded; ++i) {
    example[i] = i < count ? all.example[rows[i]] : 0;
    position[i] = i < count ? all.position[rows[i]] : 0;
  }
  return {example, position};
}

void SampleRows(ConstMat logits, const float* uniforms, int32_t* samples) {
  ForRowChunks("samples", {logits}, logits.rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<float> x(logits.cols);
    for (int64_t r = begin; r < end; ++r) {
      GetKernels().convert[logits.type](logits.cols, logits.at(r, 0), false, x.data());
      const float max = *std::max_element(x.begin(), x.end());
      double sum = 0, passed = 0;
      for (float& value : x) sum += value = std::exp(value - max);
      const double limit = uniforms[r] * sum;
      int32_t label = 0;
      for (int32_t c = 0; c < logits.cols; ++c) {
        passed += x[c];
        if (x[c] > 0) label = c;  // the last one if rounding keeps `passed` below
        if (passed > limit) break;
      }
      samples[r] = label;
    }
  });
}

}  // namespace cloze
