#include "core/ops/relative.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/ops/op.h"

namespace cloze {

RelativeScores::RelativeScores(const RelativePositions& positions, int heads, int64_t dim,
    DType type, int64_t longest, int64_t parts, Arena& arena)
    : positions_(positions), heads_(heads), dim_(dim), longest_(longest), parts_(parts),
      span_(RoundUp(longest, 32)), table_size_(2 * span_ * RoundUp(dim, 16)), type_(type),
      scale_(1 / std::sqrt(static_cast<float>(dim * positions.terms()))) {
  CLOZE_CHECK(std::ssize(positions.rows) >= 2 * longest - 1 && positions.rows.size() % 2 == 1);
  if (!positions.bias.empty()) {
    bias_ = arena.NewArray<float>(heads * 2 * span_);
    dbias_ = arena.NewArray<float>(heads * parts * 2 * span_);
  }
  const bool paired = type == DType::kBf16 && GetKernels().multiplies_bf16;
  const auto allocate = [&](ConstMat vectors, Table* table) {
    if (vectors.empty()) return;
    table->vectors = vectors;
    table->index = arena.NewArray<int32_t>(2 * span_);
    table->transposed = arena.NewArray<float>(heads * table_size_);
    table->rows = arena.NewArray<float>(heads * table_size_);
    if (parts == 0) return;
    table->pairs = paired ? arena.NewArray<float>(heads * table_size_) : table->rows;
    table->sums = arena.NewArray<float>(heads * parts * table_size_);
    table->total = arena.NewArray<float>(heads * vectors.rows * dim);
  };
  allocate(positions.keys, &keys_);
  allocate(positions.queries, &queries_);
}

int32_t RelativeScores::RowOf(int64_t distance) const {
  return positions_
      .rows[std::clamp(distance, 1 - longest_, longest_ - 1) + std::ssize(positions_.rows) / 2];
}

void RelativeScores::Pack() {
  for (int64_t c = 0; c < 2 * span_; ++c) {
    if (keys_.index != nullptr) keys_.index[c] = RowOf(span_ - c);
    if (queries_.index != nullptr) queries_.index[c] = RowOf(c - span_);
    for (int64_t head = 0; bias_ != nullptr && head < heads_; ++head)
      bias_[head * 2 * span_ + c] = positions_.bias.f32(RowOf(span_ - c))[head] / scale_;
  }
  ParallelFor(2 * heads_, [&](int64_t task) {
    const Table& table = task % 2 == 0 ? keys_ : queries_;
    const int64_t head = task / 2, at = head * table_size_;
    if (table.index == nullptr) return;
    GetKernels().pack_relative[type_]({.head_dim = dim_,
        .stride = table.vectors.stride,
        .columns = 2 * span_,
        .vectors = Columns(table.vectors, head * dim_, dim_).data,
        .index = table.index,
        .transposed = table.transposed + at,
        .rows = table.rows + at,
        .pairs = table.pairs == table.rows || parts_ == 0 ? nullptr : table.pairs + at});
  });
}

RelativeArgs RelativeScores::Args(int64_t head) const {
  const auto of_head = [&](float* p, int64_t size) {
    return p == nullptr ? nullptr : p + head * size;
  };
  return {.span = span_,
      .bias = of_head(bias_, 2 * span_),
      .keys = of_head(keys_.transposed, table_size_),
      .queries = of_head(queries_.transposed, table_size_),
      .key_pairs = of_head(keys_.pairs, table_size_),
      .query_pairs = of_head(queries_.pairs, table_size_)};
}

RelativeArgs RelativeScores::ArgsOfPart(int64_t head, int64_t part) const {
  RelativeArgs args = Args(head);
  const auto zeroed = [&](float* p, int64_t size) {
    if (p == nullptr) return p;
    float* const at = p + (head * parts_ + part) * size;
    std::memset(at, 0, size * sizeof(float));
    return at;
  };
  args.dbias = zeroed(dbias_, 2 * span_);
  args.dkeys = zeroed(keys_.sums, table_size_);
  args.dqueries = zeroed(queries_.sums, table_size_);
  return args;
}

void RelativeScores::Reduce(const RelativeGrads& grads) const {
  const int64_t width = RoundUp(dim_, 16), first = span_ - longest_ + 1, end = span_ + longest_;
  const auto reduce = [&](const Table& table, int64_t head, const Mat& grad) {
    if (table.index == nullptr) return;
    const int64_t rows = table.vectors.rows;
    float* const total = table.total + head * rows * dim_;
    std::fill_n(total, rows * dim_, 0.0f);
    for (int64_t part = 0; part < parts_; ++part) {
      const float* sums = table.sums + (head * parts_ + part) * table_size_;
      for (int64_t c = first; c < end; ++c)
        GetKernels().axpby.f32(dim_, 1, sums + c * width, 1, total + table.index[c] * dim_);
    }
    for (int64_t r = 0; r < rows; ++r) {
      GetKernels().convert.f32(dim_, total + r * dim_, type_ == DType::kBf16,
          Rows(Columns(grad, head * dim_, dim_), r, 1).data);
    }
  };
  ParallelFor(heads_, [&](int64_t head) {
    reduce(keys_, head, grads.keys);
    reduce(queries_, head, grads.queries);
    if (grads.bias.empty()) return;
    for (int64_t i = head * parts_; i < (head + 1) * parts_; ++i) {
      for (int64_t c = first; c < end; ++c)
        grads.bias.f32(RowOf(span_ - c))[head] += dbias_[i * 2 * span_ + c] / scale_;
    }
  });
}

}  // namespace cloze
