#include "encoder/modules/target_rows.h"

#include "core/ops/rows.h"

namespace cloze {

TargetRows::TargetRows(const Pass& pass)
    : rows_(pass.batch.rows), padded_(PaddedRows(rows_.size())),
      keys_(GatherCoordinates({pass.batch.row_examples.data(), pass.batch.positions.data()}, rows_,
          padded_, pass.arena)) {}

Pass TargetRows::Narrow(const Pass& pass) const {
  Pass narrow = pass;
  narrow.keys = keys_;
  return narrow;
}

Mat TargetRows::Gather(const Pass& pass, ConstMat x) const {
  Mat y = pass.arena.New(padded_, x.cols, x.type);
  GatherRows(x, rows_, y);
  return y;
}

void TargetRows::Scatter(ConstMat dy, Mat dx) const { ScatterRows(dy, rows_, dx); }

}  // namespace cloze
