// How ranks divide the trained parameters: each one sums the gradients of its part and updates it.
#ifndef CLOZE_TASKS_TRAINING_SHARD_H_
#define CLOZE_TASKS_TRAINING_SHARD_H_

#include <algorithm>
#include <cstdint>

namespace cloze {

// Floats of the flat gradients that are never divided between ranks: piece i begins at i * kPiece.
inline constexpr int64_t kPiece = 1 << 17;

struct Shard {
  int64_t begin, n;
  bool Has(int64_t i) const { return begin <= i && i < begin + n; }
};

// The part of `n` flat gradients that belongs to `rank`. May be empty.
inline Shard ShardOf(int rank, int ranks, int64_t n) {
  const auto begin = [&](int64_t r) {
    return std::min(n, (n + kPiece - 1) / kPiece * r / ranks * kPiece);
  };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

// The rank whose shard has gradient `i`.
inline int OwnerOf(int64_t i, int ranks, int64_t n) {
  int owner = 0;
  while (!ShardOf(owner, ranks, n).Has(i)) ++owner;
  return owner;
}

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SHARD_H_
