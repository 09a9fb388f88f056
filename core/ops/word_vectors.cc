#include "core/ops/word_vectors.h"

#include "core/ops/op.h"

namespace cloze {
namespace {

template <typename Void>
bool IsDense(BasicMat<Void> m) {
  return m.cols % 16 == 0 && m.stride == m.cols && m.type == DType::kF32;
}

}  // namespace

void SumTableRows(ConstMat table, absl::Span<const int32_t> rows, Mat hidden) {
  CLOZE_CHECK(IsDense(table) && hidden.cols == table.cols);
  GetKernels().sum_rows[table.type](
      std::ssize(rows), table.cols, table.data, rows.data(), hidden.f32(), false);
}

double NegativeSampling(ConstMat hidden, ConstMat table, absl::Span<const int32_t> rows,
    int64_t group_size, float rate, absl::Span<float> factors, Mat gradient) {
  CLOZE_CHECK(IsDense(table) && hidden.cols == table.cols && gradient.cols == table.cols &&
              rows.size() % group_size == 0 && factors.size() >= rows.size());
  return GetKernels().negative_sampling({.cols = table.cols,
      .hidden = hidden.f32(),
      .table = table.f32(),
      .groups = std::ssize(rows) / group_size,
      .group_size = group_size,
      .rows = rows.data(),
      .rate = rate,
      .factors = factors.data(),
      .gradient = gradient.f32()});
}

void AddRows(absl::Span<const RowUpdate> updates, ConstMat x, Mat table) {
  CLOZE_CHECK(IsDense(x) && IsDense(table) && x.cols == table.cols);
  GetKernels().add_rows(std::ssize(updates), updates.data(), table.cols, x.f32(), table.f32());
}

}  // namespace cloze
