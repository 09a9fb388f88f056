// Rows of a stored matrix, read on first use.
#ifndef CLOZE_CORE_TENSOR_LAZY_ROWS_H_
#define CLOZE_CORE_TENSOR_LAZY_ROWS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/mat.h"
#include "core/tensor/safetensors.h"

namespace cloze {

// A few texts need few rows of an embedding table; reading only those saves most of the time and
// memory at the start. Unlike with mmap, a file that is truncated meanwhile is an error and does
// not end the process. Not thread-safe.
class LazyRows {
 public:
  // Creates an object without rows to read.
  LazyRows() = default;
  // Reads rows of the tensor `name` in `files`, a float type, into `table` [rows, cols] f32, which
  // has the same shape and must outlive this.
  LazyRows(TensorFolder files, std::string name, Mat table);

  // Reads those of `rows` (indices, may repeat) that have not been read yet. kData if a value is
  // not finite or the file has become shorter, kIo if it cannot be read.
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
