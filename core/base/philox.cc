#include "core/base/philox.h"

#include <bit>

namespace cloze {

uint64_t PermutedIndex(uint64_t index, uint64_t n, const Philox& philox, uint32_t stream) {
  if (n <= 1) return 0;
  const int half = (std::bit_width(n - 1) + 1) / 2;  // the network permutes [0, 4^half), at most 4n
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const Philox::Block b = philox(right, round, stream);
      const uint64_t next = left ^ (((uint64_t{b[1]} << 32) | b[0]) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= n);
  return index;
}

}  // namespace cloze
