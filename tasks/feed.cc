#include "tasks/feed.h"

#include <algorithm>

namespace cloze {

void AddExample(const Example& example, uint64_t number, Batch* batch) {
  const int32_t first = static_cast<int32_t>(batch->tokens());
  for (const int32_t row : example.rows) batch->rows.push_back(first + row);
  batch->targets.insert(batch->targets.end(), example.labels.begin(), example.labels.end());
  batch->values.insert(batch->values.end(), example.values.begin(), example.values.end());
  batch->Add(example.ids, example.second, number);
}

absl::StatusOr<StepData> Feed::Next(int64_t next) const {
  StepData step;
  Example example;
  for (int64_t count = 0;; ++count, ++next) {
    if (spec_.examples() > 0 && count == spec_.examples()) break;
    const int64_t epoch = next / store_.size(), place = next % store_.size();
    const int64_t index = spec_.shuffle() ? PermutedIndex(place, store_.size(), order_, static_cast<uint32_t>(epoch)) : place;
    RETURN_IF_ERROR(store_.Read(index, &example));
    const int64_t length = example.ids.size();
    if (spec_.examples() == 0 && count > 0 && step.tokens + length > spec_.tokens()) break;
    if (masker_.has_value()) masker_->Apply(next, &example);
    if (step.micro.empty() || step.micro.back().tokens() + length > spec_.micro_tokens()) step.micro.emplace_back();
    AddExample(example, next, &step.micro.back());
    step.tokens += length;
    step.targets += example.rows.size();
  }
  for (Batch& batch : step.micro) batch.Pad();
  step.next = next;
  return step;
}

double Feed::StepsPerEpoch() const {
  return spec_.examples() > 0 ? double(store_.size()) / spec_.examples() : double(store_.tokens()) / spec_.tokens();
}

}  // namespace cloze
