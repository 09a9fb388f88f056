#include "encoder/modules/batch.h"

#include "core/tensor/mat.h"

namespace cloze {

int64_t PaddedRows(int64_t rows) { return RoundUp(rows, rows < 64 ? 8 : 64); }

void Batch::Add(absl::Span<const int32_t> sequence, int64_t second, uint64_t example) {
  const int64_t n = sequence.size();
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  for (int64_t i = 0; i < n; ++i) {
    types.push_back(i >= second);
    positions.push_back(static_cast<int32_t>(i));
    row_examples.push_back(example);
  }
  cu_seqlens.push_back(static_cast<int32_t>(ids.size()));
}

void Batch::Pad() {
  const int64_t padded = PaddedRows(tokens());
  for (auto* field : {&ids, &types, &positions}) field->resize(padded, 0);
  row_examples.resize(padded, 0);
}

}  // namespace cloze
