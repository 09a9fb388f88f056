// Ranks divide the trained parameters: each one sums the gradients of its shard and updates it.
#ifndef CLOZE_TASKS_UPDATE_GRADIENT_SHARD_H_
#define CLOZE_TASKS_UPDATE_GRADIENT_SHARD_H_

#include <algorithm>
#include <cstdint>

namespace cloze {

// Floats in a slice of the flat gradients, which is never divided between ranks: slice i begins at
// i * kSliceFloats and belongs to rank i mod ranks, so that each rank has a part of every layer.
inline constexpr int64_t kSliceFloats = 1 << 17;

inline int OwnerOf(int64_t gradient, int ranks) {
  return static_cast<int>(gradient / kSliceFloats % ranks);
}

// The slices of one rank. Its arrays hold them one after the other.
class Shard {
 public:
  // `n` flat gradients.
  Shard(int rank, int ranks, int64_t n) : rank_(rank), ranks_(ranks), n_(n) {}

  bool Has(int64_t gradient) const { return OwnerOf(gradient, ranks_) == rank_; }
  // Returns the index in the rank's arrays of a gradient that it has.
  int64_t OffsetOf(int64_t gradient) const {
    return gradient / kSliceFloats / ranks_ * kSliceFloats + gradient % kSliceFloats;
  }
  // Calls f(first gradient, number of gradients) for each slice; if there is one rank, once for all
  // gradients.
  template <typename F>
  void ForEach(F f) const {
    const int64_t n = ranks_ == 1 ? n_ : kSliceFloats;
    for (int64_t at = rank_ * kSliceFloats; at < n_; at += ranks_ * n) f(at, std::min(n, n_ - at));
  }
  // Floats of the arrays.
  int64_t size() const {
    int64_t size = 0;
    ForEach([&](int64_t, int64_t n) { size += n; });
    return size;
  }
  // Returns an upper bound of the floats of any rank's arrays.
  static int64_t MaxSize(int ranks, int64_t n) {
    const int64_t slices = (n + kSliceFloats - 1) / kSliceFloats;
    return std::min(n, (slices + ranks - 1) / ranks * kSliceFloats);
  }

 private:
  int rank_, ranks_;
  int64_t n_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_GRADIENT_SHARD_H_
