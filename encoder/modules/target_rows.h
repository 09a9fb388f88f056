// The rows of a batch that have a target.
#ifndef CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
#define CLOZE_ENCODER_MODULES_TARGET_ROWS_H_

#include "encoder/modules/pass.h"

namespace cloze {

// A batch's `rows`, one behind the other and padded as a batch is: nobody reads the last hidden
// states of others, so what follows the last attention is computed for them alone. Does not own its
// arrays; lives as long as the arena's pass.
class TargetRows {
 public:
  explicit TargetRows(const Pass& pass);

  int64_t padded() const { return padded_; }
  // The pass for modules that see these rows alone.
  Pass Narrow(const Pass& pass) const;
  // x [rows of the batch, n] -> its rows with a target [padded(), n], and zeros behind them.
  Mat Gather(const Pass& pass, ConstMat x) const;
  // Backward of Gather: dx [rows of the batch, n] is overwritten, with zeros where no target is.
  void Scatter(ConstMat dy, Mat dx) const;

 private:
  absl::Span<const int32_t> rows_;
  int64_t padded_;
  RowCoordinates keys_;  // [padded]
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
