// A matrix of vectors from a file, for exact search.
#ifndef CLOZE_TASKS_INFERENCE_VECTOR_INDEX_H_
#define CLOZE_TASKS_INFERENCE_VECTOR_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/ops/nearest.h"
#include "core/tensor/arena.h"

namespace cloze {

enum class Similarity : uint8_t { kCosine, kDot };

// True if `path` has the name of a file of vectors: .npy, .safetensors.
bool IsVectorFile(const std::string& path);

class VectorIndex {
 public:
  // Opens a file of `cloze encode`, or one like it:
  //   .npy: float32 [rows, cols] in C order; ids in NAME.npy.ids.json, if there is one
  //   others: safetensors with "vectors" [rows, cols] of type F32, F16, BF16, F64, or I8 with
  //     "vectors_scale" [rows, 1]; ids in the metadata, as a JSON list
  // bf16 and s8 stay as they are in memory. kNoInput; kData for other content, an empty matrix,
  // values that are not finite, or not as many ids as rows.
  static absl::StatusOr<VectorIndex> Open(const std::string& path, Similarity similarity);
  // An index of f32 vectors [values.size() / cols, cols].
  static absl::StatusOr<VectorIndex> Of(
      absl::Span<const float> values, int64_t cols, Similarity similarity);

  // The vectors; with kCosine, of length 1 after their scales. Rows of zeros stay zeros.
  VectorRows table() const;
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // The id of each row as JSON text, "null" for none; empty if no row has one.
  const std::vector<std::string>& ids() const { return ids_; }
  // Returns rows [begin, begin + n) in f32, as table() has them.
  std::vector<float> RowsF32(int64_t begin, int64_t n) const;

 private:
  absl::Status ReadNpy(const std::string& path);
  absl::Status ReadSafetensors(const std::string& path);
  // Reads the matrix, of rows_ * cols_ elements of type_, from `offset`.
  absl::Status ReadMatrix(const std::string& path, int64_t offset);
  absl::Status SetIds(const std::string& list, const std::string& where);
  // Checks the values, and scales them for the similarity.
  absl::Status Finish(const std::string& where, Similarity similarity);

  LargeMemory data_;
  int64_t rows_ = 0, cols_ = 0;
  DType type_ = DType::kF32;
  std::vector<float> scales_;  // empty: 1
  std::vector<std::string> ids_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_VECTOR_INDEX_H_
