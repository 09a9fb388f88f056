#include "tasks/packer.h"

#include "core/base/status.h"

namespace cloze {

void AddExample(const Example& example, uint64_t number, Batch* batch) {
  const int32_t first = static_cast<int32_t>(batch->tokens());
  for (size_t i = 0; i < example.rows.size(); ++i) {
    const int32_t row = first + example.rows[i];
    batch->rows.push_back(row);
    const int32_t last = row + (example.averages ? example.further[i] : 0);
    for (int32_t piece = row; piece <= last; ++piece) batch->pieces.push_back(piece);
    batch->piece_ends.push_back(static_cast<int32_t>(batch->pieces.size()));
  }
  batch->largest |= example.largest;
  batch->targets.insert(batch->targets.end(), example.labels.begin(), example.labels.end());
  batch->values.insert(batch->values.end(), example.values.begin(), example.values.end());
  if (!example.joined) batch->groups.push_back(static_cast<int32_t>(batch->sequences()));
  batch->Add(example.ids, example.second, number);
  if (!example.causal && batch->causal.empty()) return;
  batch->causal.resize(batch->sequences() - 1, false);
  batch->causal.push_back(example.causal);
}

int64_t JoinedTokens(absl::Span<const Example> sequences) {
  int64_t tokens = 0;
  for (size_t i = 0; i < sequences.size() && (i == 0 || sequences[i].joined); ++i)
    tokens += std::ssize(sequences[i].ids);
  return tokens;
}

absl::Status Packer::Add(const Example& sequence, uint64_t number, int64_t tokens) {
  if (!sequence.joined && batch_.tokens() + tokens > max_tokens_) RETURN_IF_ERROR(Finish());
  AddExample(sequence, number, &batch_);
  return absl::OkStatus();
}

absl::Status Packer::Finish() {
  if (batch_.sequences() == 0) return absl::OkStatus();
  batch_.Pad();
  return run_(std::exchange(batch_, {}));
}

}  // namespace cloze
