#include "encoder/modules/pass.h"

#include <algorithm>

#include "core/tensor/mat.h"

namespace cloze {

int64_t PaddedRows(int64_t rows) { return RoundUp(rows, rows < 64 ? 8 : 64); }

void Batch::Add(absl::Span<const int32_t> sequence, int64_t second, uint64_t example) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  for (int64_t i = 0; i < std::ssize(sequence); ++i) {
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

Pass Pass::Over(const Batch& other) const {
  Pass pass = {params, matmul, arena, other, seed, training, compute, adapter, replaced};
  pass.decoding = decoding;
  pass.states = states;
  pass.recompute = recompute;
  return pass;
}

TargetRows::TargetRows(const Pass& pass, absl::Span<const int32_t> rows)
    : rows_(rows), padded_(PaddedRows(rows_.size())),
      coordinates_(GatherCoordinates(pass.batch.coordinates(), rows_, padded_, pass.arena)) {
  for (const int32_t first : pass.batch.cu_seqlens)
    cu_seqlens_.push_back(
        static_cast<int32_t>(std::lower_bound(rows_.begin(), rows_.end(), first) - rows_.begin()));
}

Pass TargetRows::Narrow(const Pass& pass) const {
  Pass narrow = pass;
  narrow.coordinates = coordinates_;
  narrow.sequences = cu_seqlens_;
  return narrow;
}

Mat TargetRows::Gather(const Pass& pass, ConstMat x) const {
  Mat y = pass.arena.New(padded_, x.cols, x.type);
  GatherRows(x, rows_, y);
  return y;
}

}  // namespace cloze
