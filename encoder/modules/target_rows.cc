#include "encoder/modules/target_rows.h"

#include <algorithm>
#include <cstring>

namespace cloze {

TargetRows::TargetRows(const Pass& pass)
    : rows_(pass.batch.rows), padded_(PaddedRows(rows_.size())) {
  uint64_t* example = pass.arena.NewArray<uint64_t>(padded_);
  int32_t* position = pass.arena.NewArray<int32_t>(padded_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    example[i] = pass.batch.row_examples[rows_[i]];
    position[i] = pass.batch.positions[rows_[i]];
  }
  std::fill(example + rows_.size(), example + padded_, 0);
  std::fill(position + rows_.size(), position + padded_, 0);
  keys_ = {example, position};
}

Pass TargetRows::Narrow(const Pass& pass) const {
  Pass narrow = pass;
  narrow.keys = keys_;
  return narrow;
}

Mat TargetRows::Gather(const Pass& pass, ConstMat x) const {
  Mat y = pass.arena.NewZero(padded_, x.cols, x.type);
  GatherRows(x, rows_, y);
  return y;
}

void TargetRows::Scatter(ConstMat dy, Mat dx) const {
  CLOZE_CHECK(dx.cols == dx.stride);
  std::memset(dx.data, 0, dx.rows * dx.cols * SizeOf(dx.type));
  ScatterRows(dy, rows_, dx);
}

}  // namespace cloze
