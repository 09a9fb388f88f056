#include "encoder/modules/target_rows.h"

namespace cloze {

TargetRows::TargetRows(const Pass& pass)
    : rows_(pass.batch.rows), padded_(PaddedRows(rows_.size())),
      coordinates_(GatherCoordinates({pass.batch.row_examples.data(), pass.batch.positions.data()},
          rows_, padded_, pass.arena)) {}

Pass TargetRows::Narrow(const Pass& pass) const {
  Pass narrow = pass;
  narrow.coordinates = coordinates_;
  return narrow;
}

Mat TargetRows::Gather(const Pass& pass, ConstMat x) const {
  Mat y = pass.arena.New(padded_, x.cols, x.type);
  GatherRows(x, rows_, y);
  return y;
}

}  // namespace cloze
