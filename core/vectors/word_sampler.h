// Draws words in proportion to the square roots of their counts, in O(1).
#ifndef CLOZE_CORE_VECTORS_WORD_SAMPLER_H_
#define CLOZE_CORE_VECTORS_WORD_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "core/base/philox.h"

namespace cloze {

// The alias method (Vose 1991): in cell i, word i with probability share_[i], else other_[i].
class WordSampler {
 public:
  // `counts` of all words, at least one, each above 0.
  explicit WordSampler(const std::vector<int64_t>& counts);

  // Returns the word that a random number draws: its upper bits the cell, the others the share.
  int32_t Word(uint32_t random) const {
    const uint64_t draw = uint64_t{random} * share_.size();
    const auto cell = static_cast<int32_t>(draw >> 32);
    return Philox::Uniform(static_cast<uint32_t>(draw)) < share_[cell] ? cell : other_[cell];
  }

 private:
  std::vector<float> share_;
  std::vector<int32_t> other_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_VECTORS_WORD_SAMPLER_H_
