// How ranks divide the trained parameters: each one sums the gradients of its part and updates it.
#ifndef CLOZE_TASKS_TRAINING_SHARD_H_
#define CLOZE_TASKS_TRAINING_SHARD_H_

#include <algorithm>
#include <cstdint>

namespace cloze {

// Floats in a piece of the flat gradients, which is never divided between ranks: piece i begins at
// i * kPiece and belongs to rank i mod ranks, so that each rank has a part of every layer.
inline constexpr int64_t kPiece = 1 << 17;

inline int OwnerOf(int64_t gradient, int ranks) {
  return static_cast<int>(gradient / kPiece % ranks);
}

// The pieces of one rank. Its arrays hold them one after the other.
class Shard {
 public:
  // `n` flat gradients.
  Shard(int rank, int ranks, int64_t n) : rank_(rank), ranks_(ranks), n_(n) {}

  bool Has(int64_t gradient) const { return OwnerOf(gradient, ranks_) == rank_; }
  // Returns the index in the rank's arrays of a gradient that it has.
  int64_t Place(int64_t gradient) const {
    return gradient / kPiece / ranks_ * kPiece + gradient % kPiece;
  }
  // Calls f(first gradient, number of gradients) for each piece; if there is one rank, once for all
  // gradients.
  template <typename F>
  void ForEach(F f) const {
    const int64_t n = ranks_ == 1 ? n_ : kPiece;
    for (int64_t at = rank_ * kPiece; at < n_; at += ranks_ * n) f(at, std::min(n, n_ - at));
  }
  // Floats of the arrays.
  int64_t size() const {
    int64_t size = 0;
    ForEach([&](int64_t, int64_t n) { size += n; });
    return size;
  }

 private:
  int rank_, ranks_;
  int64_t n_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SHARD_H_
