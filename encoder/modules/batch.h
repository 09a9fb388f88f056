// A batch: packed sequences, without padding between them.
#ifndef CLOZE_ENCODER_MODULES_BATCH_H_
#define CLOZE_ENCODER_MODULES_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// Returns `rows` rounded up to a multiple of 64, or of 8 below 64.
int64_t PaddedRows(int64_t rows);

// Arrays are [padded_rows] unless noted. Rows from tokens() on are padding, which limits the number
// of matrix shapes; they belong to no sequence and have no loss.
struct Batch {
  std::vector<int32_t> ids, types, positions;  // positions count from 0 in each sequence
  std::vector<uint64_t> row_examples;          // global example number of each row, for dropout
  std::vector<int32_t> cu_seqlens = {0};       // [sequences + 1] first row of each sequence
  std::vector<int32_t> rows, targets;  // [targets] labelled rows, ascending, and their labels
  std::vector<float> values;  // [targets, labels] replaces `targets` for multi-label (0 or 1) and
                              // regression

  int64_t tokens() const { return cu_seqlens.back(); }
  int64_t padded_rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }

  void Clear() { *this = Batch(); }
  // Appends a sequence; `second` is the index of its first token of type 1. Call before Pad().
  void Add(absl::Span<const int32_t> sequence, int64_t second, uint64_t example);
  // Pads the rows to PaddedRows(tokens()).
  void Pad();
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_BATCH_H_
