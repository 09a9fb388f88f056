// Rows of a stored matrix that are read when they are first wanted.
#ifndef CLOZE_CORE_TENSOR_LAZY_ROWS_H_
#define CLOZE_CORE_TENSOR_LAZY_ROWS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/mat.h"
#include "core/tensor/safetensors.h"

namespace cloze {

// Of an embedding table, a few texts need a few rows: reading no others saves most of the time and
// memory of a start. A map of the file would do the same, and would end the process when the file
// is cut short meanwhile; here that is an error. Not thread-safe.
class LazyRows {
 public:
  // Nothing is left to read.
  LazyRows() = default;
  // Tensor `name` of `files`, a float type, has the shape of `table` [rows, cols] f32, which gets
  // the rows and outlives this.
  LazyRows(TensorFolder files, std::string name, Mat table);

  // Reads those of `rows` (indices, as often as they like) that are not there yet. kData when a
  // value is not finite or the file has become shorter, kIo when it cannot be read.
  absl::Status Read(absl::Span<const int32_t> rows);
  absl::Status ReadAll();

 private:
  absl::Status ReadRun(int64_t begin, int64_t end);

  TensorFolder files_;
  std::string name_;
  Mat table_;
  std::vector<bool> there_;  // of each row
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_LAZY_ROWS_H_
