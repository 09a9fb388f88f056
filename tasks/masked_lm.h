// Masked language modelling: which tokens of a sequence are hidden, and by what.
#ifndef CLOZE_TASKS_MASKED_LM_H_
#define CLOZE_TASKS_MASKED_LM_H_

#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/text/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"

namespace cloze {

// Draws from Philox(seed, example, position) only: the same example number always gives the same mask.
class Masker {
 public:
  // kSpec when the vocabulary has no <mask>.
  static absl::StatusOr<Masker> Create(const MaskedLmSpec& spec, const Tokenizer& tokenizer, uint64_t seed);

  // Picks max(1, round(mask_share * n)) of the example's n ordinary tokens; each becomes <mask>, stays, or becomes a random ordinary token.
  // Sets rows (ascending) and labels (the original ids). An example of special tokens only gets none.
  void Apply(uint64_t example, Example* e) const;

 private:
  Masker(const MaskedLmSpec& spec, uint64_t seed) : spec_(spec), philox_(seed, Purpose::kMask) {}

  MaskedLmSpec spec_;
  Philox philox_;
  int32_t mask_ = -1;
  std::vector<bool> special_;      // [vocab]
  std::vector<int32_t> ordinary_;  // ids that are not special
};

}  // namespace cloze

#endif  // CLOZE_TASKS_MASKED_LM_H_
