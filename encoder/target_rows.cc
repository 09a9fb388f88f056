#include "encoder/target_rows.h"

#include <algorithm>
#include <cstring>

namespace cloze {

TargetRows::TargetRows(const Step& step)
    : rows_(step.batch.rows), padded_(PaddedRows(rows_.size())) {
  uint64_t* example = step.arena.NewArray<uint64_t>(padded_);
  int32_t* position = step.arena.NewArray<int32_t>(padded_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    example[i] = step.batch.row_examples[rows_[i]];
    position[i] = step.batch.positions[rows_[i]];
  }
  std::fill(example + rows_.size(), example + padded_, 0);
  std::fill(position + rows_.size(), position + padded_, 0);
  keys_ = {example, position};
}

Step TargetRows::Narrow(const Step& step) const {
  Step narrow = step;
  narrow.keys = keys_;
  return narrow;
}

Mat TargetRows::Gather(const Step& step, ConstMat x) const {
  Mat y = step.arena.NewZero(padded_, x.cols, x.type);
  GatherRows(x, rows_, y);
  return y;
}

void TargetRows::Scatter(ConstMat dy, Mat dx) const {
  CLOZE_CHECK(dx.cols == dx.stride);
  std::memset(dx.data, 0, dx.rows * dx.cols * SizeOf(dx.type));
  ScatterRows(dy, rows_, dx);
}

}  // namespace cloze
