#include "core/tensor/lazy_rows.h"

#include <algorithm>

namespace cloze {

LazyRows::LazyRows(TensorFolder files, std::string name, Mat table)
    : files_(std::move(files)), name_(std::move(name)), table_(table), there_(table.rows) {
  CLOZE_CHECK(table.stride == table.cols);
}

absl::Status LazyRows::ReadRun(int64_t begin, int64_t end) {
  const absl::Span<float> out(table_.f32(begin), (end - begin) * table_.cols);
  RETURN_IF_ERROR(files_.ReadPartF32(name_, begin * table_.cols, out));
  std::fill(there_.begin() + begin, there_.begin() + end, true);
  return absl::OkStatus();
}

absl::Status LazyRows::Read(absl::Span<const int32_t> rows) {
  if (table_.empty()) return absl::OkStatus();
  for (const int32_t row : rows) {
    if (!there_[row]) RETURN_IF_ERROR(ReadRun(row, row + 1));
  }
  return absl::OkStatus();
}

absl::Status LazyRows::ReadAll() {
  for (auto begin = there_.begin();
       (begin = std::find(begin, there_.end(), false)) != there_.end();) {
    const auto end = std::find(begin, there_.end(), true);
    RETURN_IF_ERROR(ReadRun(begin - there_.begin(), end - there_.begin()));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace cloze
