// The rows of a batch that have a target.
#ifndef CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
#define CLOZE_ENCODER_MODULES_TARGET_ROWS_H_

#include "encoder/modules/pass.h"

namespace cloze {

// The target rows of a batch, packed and padded like a batch. After the last
// attention only these rows are computed, because no other hidden states are
// used. Does not own its arrays, which live in the arena of the pass.
class TargetRows {
 public:
  explicit TargetRows(const Pass& pass);

  int64_t padded() const { return padded_; }
  // Returns the pass for modules that process only these rows.
  Pass Narrow(const Pass& pass) const;
  // Returns the target rows of x [rows of the batch, n] as [padded(), n], padded with zeros.
  Mat Gather(const Pass& pass, ConstMat x) const;
  // Backward of Gather: overwrites dx [rows of the batch, n], with zeros in all other rows.
  void Scatter(ConstMat dy, Mat dx) const;

 private:
  absl::Span<const int32_t> rows_;
  int64_t padded_;
  RowCoordinates keys_;  // [padded]
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_TARGET_ROWS_H_
