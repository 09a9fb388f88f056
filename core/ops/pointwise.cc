// Activation, column sums, conversion, gather and scatter.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cloze {
namespace {

// Grows with every change of the code of core/ops or encoder that changes the bits of a result.
constexpr int kKernelsVersion = 3;
#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "GCC " __VERSION__;
#endif

}  // namespace

std::string KernelsName() {
  return absl::StrCat(GetKernels().name, " ", kKernelsVersion, ", ", kCompiler);
}
bool MultipliesBf16() { return GetKernels().multiplies_bf16; }

void ActivationForward(ActivationKind kind, ConstMat u, Mat y) {
  CLOZE_CHECK(u.cols == u.stride && y.cols == y.stride && u.type == y.type);
  const Op op("activation", [&] { return Traffic({u, y}); });
  if (op.dry()) return;
  ParallelChunks(u.rows, 16, [&](int64_t begin, int64_t end) {
    GetKernels().activation[int(u.type)](
        kind, (end - begin) * u.cols, Rows(u, begin, 0).data, Rows(y, begin, 0).data);
  });
}

void ActivationBackward(
    ActivationKind kind, ConstMat u, ConstMat dy, float* dbias, Arena& arena, Mat y, Mat du) {
  CLOZE_CHECK(
      u.cols == u.stride && dy.cols == dy.stride && y.cols == y.stride && du.cols == du.stride);
  const Op op("activation backward", [&] { return Traffic({u, dy, y, du}); });
  ReduceRows(u.rows, u.cols, arena, dbias, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().activation_grad[int(u.type)](kind, end - begin, u.cols, Rows(u, begin, 0).data,
        Rows(dy, begin, 0).data, Rows(y, begin, 0).data, Rows(du, begin, 0).data, partial);
  });
}

void AddColumnSums(ConstMat x, Arena& arena, float* sum) {
  if (sum == nullptr) return;
  const Op op("column sums", [&] { return Traffic({x}); });
  ReduceRows(x.rows, x.cols, arena, sum, [&](int64_t begin, int64_t end, float* partial) {
    GetKernels().column_sum[int(x.type)](
        end - begin, x.cols, Rows(x, begin, 0).data, x.stride, partial);
  });
}

void GatherRows(ConstMat x, absl::Span<const int32_t> rows, Mat y) {
  CLOZE_CHECK(x.cols == y.cols && x.type == y.type && y.rows >= static_cast<int64_t>(rows.size()));
  const Op op("gather", [&] { return Traffic({y, y}); });
  if (op.dry()) return;
  ParallelChunks(rows.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(Rows(y, i, 0).data, Rows(x, rows[i], 0).data, x.cols * SizeOf(x.type));
  });
  ZeroRowsFrom(y, rows.size());
}

void ScatterRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx) {
  CLOZE_CHECK(dx.cols == dy.cols && dx.type == dy.type);
  const Op op("scatter", [&] { return Traffic({dy, dx}); });
  if (op.dry()) return;
  ZeroRowsFrom(dx, 0);
  ParallelChunks(rows.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(Rows(dx, rows[i], 0).data, Rows(dy, i, 0).data, dy.cols * SizeOf(dy.type));
  });
}

void ZeroRowsFrom(Mat m, int64_t begin) {
  const Op op("zero", [&] { return Traffic({Rows(m, begin, m.rows - begin)}); });
  if (op.dry()) return;
  for (int64_t r = begin; r < m.rows; ++r)
    std::memset(Rows(m, r, 0).data, 0, m.cols * SizeOf(m.type));
}

RowKeys GatherKeys(
    const RowKeys& keys, absl::Span<const int32_t> rows, int64_t padded, Arena& arena) {
  uint64_t* example = arena.NewArray<uint64_t>(padded);
  int32_t* position = arena.NewArray<int32_t>(padded);
  const Op op("gather keys", [&] { return OpCost{.bytes = 24.0 * padded}; });
  if (op.dry()) return {example, position};
  const int64_t count = rows.size();
  for (int64_t i = 0; i < padded; ++i) {
    example[i] = i < count ? keys.example[rows[i]] : 0;
    position[i] = i < count ? keys.position[rows[i]] : 0;
  }
  return {example, position};
}

void Combine(float a, ConstMat x, float b, Mat y) {
  CLOZE_CHECK(x.rows == y.rows && x.cols == y.cols && x.type == y.type);
  const Op op("combine", [&] { return Traffic({x, y}); });
  if (op.dry()) return;
  ParallelChunks(x.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      GetKernels().combine[int(x.type)](x.cols, a, Rows(x, r, 0).data, b, Rows(y, r, 0).data);
  });
}

void Convert(ConstMat src, Mat dst) {
  CLOZE_CHECK(src.rows == dst.rows && src.cols == dst.cols);
  const Op op("convert", [&] { return Traffic({src, dst}); });
  if (op.dry()) return;
  ParallelChunks(src.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      GetKernels().convert[int(src.type)][int(dst.type)](
          src.cols, Rows(src, r, 0).data, Rows(dst, r, 0).data);
    }
  });
}

}  // namespace cloze
