// The rows of a batch that have a target.
#ifndef CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
#define CLOZE_ENCODER_MODULES_TARGET_ROWS_H_

#include "core/ops/rows.h"
#include "encoder/modules/pass.h"

namespace cloze {

// The target rows of a batch, packed and padded. After the last attention only these rows are
// computed, because no other hidden states are used. Its arrays belong to the arena of the pass.
class TargetRows {
 public:
  explicit TargetRows(const Pass& pass);

  int64_t padded() const { return padded_; }
  // Returns the pass for modules that process only these rows.
  Pass Narrow(const Pass& pass) const;
  // Returns the target rows of x [padded_rows, n] as [padded(), n], padded with zeros.
  Mat Gather(const Pass& pass, ConstMat x) const;
  // Backward of Gather: overwrites dx [padded_rows, n], other rows with zeros.
  void Scatter(ConstMat dy, Mat dx) const { ScatterRows(dy, rows_, dx); }

 private:
  absl::Span<const int32_t> rows_;
  int64_t padded_;
  RowCoordinates coordinates_;  // [padded]
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
