#include "tasks/masked_lm.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cloze {

absl::StatusOr<Masker> Masker::Create(const MaskedLmSpec& spec, const Tokenizer& tokenizer, uint64_t seed) {
  Masker masker(spec, seed);
  masker.mask_ = tokenizer.special().mask;
  if (masker.mask_ < 0) return Error(Exit::kSpec, "the vocabulary has no <mask> (or [MASK]) token, masked_lm needs one");
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    masker.special_.push_back(tokenizer.is_special(id));
    if (!masker.special_.back()) masker.ordinary_.push_back(id);
  }
  if (masker.ordinary_.empty()) return Error(Exit::kSpec, "the vocabulary has only special tokens");
  return masker;
}

void Masker::Apply(uint64_t example, Example* e) const {
  std::vector<std::pair<uint32_t, int32_t>> candidates;  // random word, position
  for (size_t i = 0; i < e->ids.size(); ++i) {
    if (!special_[e->ids[i]]) candidates.emplace_back(philox_(example, static_cast<uint32_t>(i), 0)[0], static_cast<int32_t>(i));
  }
  e->rows.clear();
  e->labels.clear();
  if (candidates.empty()) return;
  const auto count = std::max<int64_t>(1, std::lround(spec_.mask_share() * candidates.size()));
  std::nth_element(candidates.begin(), candidates.begin() + count - 1, candidates.end());
  for (int64_t i = 0; i < count; ++i) e->rows.push_back(candidates[i].second);
  std::sort(e->rows.begin(), e->rows.end());
  for (const int32_t row : e->rows) {
    e->labels.push_back(e->ids[row]);
    const Philox::Block b = philox_(example, static_cast<uint32_t>(row), 0);
    const float u = Philox::Uniform(b[1]);
    if (u < spec_.keep_share()) continue;
    e->ids[row] = u < spec_.keep_share() + spec_.random_share() ? ordinary_[Philox::Below(b[2], ordinary_.size())] : mask_;
  }
}

}  // namespace cloze
